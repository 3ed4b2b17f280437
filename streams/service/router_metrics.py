"""Show single routers on /metrics, up to `PB_METRICS_ROUTERS` of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import orjson
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ground.json_values import Document
from router_state.runs.run_budget import RULED_OUT
from streams.service.label_metrics import label_metrics
from streams.service.watched_records import ReadRecord

GAUGES = {
    "lambda_t": (
        "pb_router_lambda_t",
        "Dual variable of the budget, 0: it does not bind, 1e6: no price meets the budget",
    ),
    "budget_usd_per_request": (
        "pb_router_budget_usd_per_request",
        "Budget; routers without one are left out",
    ),
    "committed_usd": ("pb_router_committed_usd", "Expected cost of the requests in flight"),
    "in_flight": ("pb_router_in_flight", "Decided requests whose bill is awaited"),
    # Gauges, as a revised bill may lower them.
    "spend_usd": ("pb_router_spend_usd", "Bills of known requests"),
    "unmatched_cost_usd": ("pb_router_unmatched_cost_usd", "Bills of unknown requests"),
}
"""Gauges: metric and help by field of `pb.lambda`."""
COUNTERS = {
    "decided": ("pb_router_decisions", "Decisions"),
    "settled": ("pb_router_settled", "Bills booked"),
    "rewards_applied": ("pb_router_rewards", "Requests that have a reward"),
}
"""Counters: metric and help by field of `pb.lambda`."""
MODELS = {
    "mean": ("pb_router_model_expected_reward", "Quality that the router expects of a model"),
    "expected_cost_usd": (
        "pb_router_model_expected_cost_usd",
        "Cost per request that the router expects of a model",
    ),
}
"""Gauges of a model: metric and help by field of a decision's candidates."""
EXPECTATIONS = {
    "expected_reward": (
        "pb_router_expected_reward",
        "Sum of the rewards that decisions were expected to earn",
    ),
    "decisions": ("pb_router_expected_reward_decisions", "Decisions in that sum"),
    "budgeted": (
        "pb_router_session_budget_decisions",
        "Decisions whose session has a budget",
    ),
    "limited": (
        "pb_router_session_budget_limited",
        "Of these, decisions in which what is left of the budget ruled out a model",
    ),
    "planned": ("pb_router_plans", "Decisions whose plan has several calls"),
    "further": (
        "pb_router_plan_further_calls",
        "Calls beyond the first that these plans were expected to make",
    ),
}
"""Counters of expectations in decisions: metric and help by attribute of `Router`."""
PLANNED = {
    # Gauges, as a plan may be expected to cost more than it saves.
    "gain": ("pb_router_plan_gain", "Sum of the rewards that plans were expected to gain"),
    "saved_usd": ("pb_router_plan_saved_usd", "Dollars that plans were expected to save"),
}
"""The same against one call in place of each plan: gauges."""
RECENT = 1.0 / 200.0
"""Weight of the newest decision in the mean expected reward of a model, as on the dashboard."""


PERIODS = {
    "usd": ("pb_router_period_budget_usd", "Budget of the period that goes on"),
    "charged_usd": ("pb_router_period_charged_usd", "What is charged of it"),
    "left_usd": ("pb_router_period_left_usd", "What is left of it"),
    "forecast_usd": ("pb_router_period_forecast_usd", "What will be charged at its end"),
    "forecast_low_usd": (
        "pb_router_period_forecast_low_usd",
        "The same in a case of few requests; nine of ten cases are between low and high",
    ),
    "forecast_high_usd": ("pb_router_period_forecast_high_usd", "In a case of many requests"),
    "ends": ("pb_router_period_end_timestamp_seconds", "When it ends, since the epoch"),
    "binds": ("pb_router_period_binds", "1 for the tightest budget of a router"),
}
"""Gauges of a period: metric and help by field of a budget in `budgets`; the label `period` of a
holding is its line.
"""


SHARES = {
    "passes_right": (
        "pb_router_verifier_passes_right",
        "Share of a model's right answers that a verifier passes",
    ),
    "stops_wrong": (
        "pb_router_verifier_stops_wrong",
        "Share of a model's wrong answers that a verifier stops",
    ),
}
"""Gauges of a verifier: metric and help by field of its models in `verifiers`."""


@dataclass(slots=True)
class Router:
    """The last published state of one router, and counts of its decisions on this worker.

    Attributes:
        budgeted: decisions whose session has a budget; limited: those for which the rest of that
            budget left out models.
        planned, further, gain, saved_usd: of plans, see `EXPECTATIONS` and `PLANNED`.
        parted: alerts `source_parted`, by source.
    """

    partition: int
    shown: Document = field(default_factory=dict)
    expected_reward: float = 0.0
    decisions: int = 0
    budgeted: int = 0
    limited: int = 0
    planned: int = 0
    further: float = 0.0
    gain: float = 0.0
    saved_usd: float = 0.0
    models: dict[str, tuple[int, dict[str, float]]] = field(default_factory=dict)
    parted: Counter[str] = field(default_factory=Counter)

    def rate(self, candidates: list[Document]) -> None:
        """Add a decision's expectations of its models to the means; models that left the portfolio
        are dropped.
        """
        found = {}
        for one in candidates:
            rated, before = self.models.get(one["model"], (0, dict.fromkeys(MODELS, 0.0)))
            weight = max(RECENT, 1.0 / (rated + 1))
            now = {name: old + weight * (one[name] - old) for name, old in before.items()}
            found[one["model"]] = (rated + 1, now)
        self.models = found

    def plan(self, route: Document) -> None:
        """Add a decision's plan, and compare the plan with a single call."""
        steps = route.get("plan") or []
        if len(steps) < 2:
            return
        self.planned += 1
        self.further += sum(step["probability"] for step in steps[1:])
        open_ones = [one for one in route.get("candidates") or () if one.get("excluded") is None]
        if open_ones:
            alone = max(open_ones, key=lambda one: one["score"])
            self.gain += route["expected_reward"] - alone["mean"]
            self.saved_usd += alone["expected_cost_usd"] - route["expected_cost_usd"]


class RouterMetrics(Collector):
    """The metrics of one worker's routers, read from the records that the worker publishes.

    Args:
        limit: most routers that have metrics of their own, those with the most decisions first; the
            others are only counted.
    """

    def __init__(self, limit: int, *, partition_of: Callable[[str], int]) -> None:
        self._limit = limit
        self._partition_of = partition_of
        self._routers: dict[str, Router] = {}

    @property
    def readers(self) -> dict[str, ReadRecord]:
        """Return the function that takes in the records of a topic, by the topic's short name."""
        return {"lambda": self._paced, "routes": self._decided, "alerts": self._alerted}

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget the routers of partitions that went to others."""
        self._routers = {
            name: router
            for name, router in self._routers.items()
            if router.partition not in partitions
        }

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, at each scrape."""
        ranked = sorted(
            self._routers.items(), key=lambda item: (-item[1].shown.get("decided", 0), item[0])
        )
        shown = ranked[: self._limit]
        for families, kind in ((GAUGES, GaugeMetricFamily), (COUNTERS, CounterMetricFamily)):
            for name, (metric, meaning) in families.items():
                family = kind(metric, meaning, labels=["router_id"])
                for router_id, router in shown:
                    if (value := router.shown.get(name)) is not None:
                        family.add_metric([router_id], value)
                yield family
        yield from _periods(shown)
        for name, (metric, meaning) in EXPECTATIONS.items():
            family = CounterMetricFamily(metric, meaning, labels=["router_id"])
            for router_id, router in shown:
                family.add_metric([router_id], getattr(router, name))
            yield family
        for name, (metric, meaning) in PLANNED.items():
            plans = GaugeMetricFamily(metric, meaning, labels=["router_id"])
            for router_id, router in shown:
                if router.planned:
                    plans.add_metric([router_id], getattr(router, name))
            yield plans
        parted = {
            (router_id, source): count
            for router_id, router in shown
            for source, count in router.parted.items()
        }
        yield from label_metrics([(name, router.shown) for name, router in shown], parted)
        yield from _verifiers(shown)
        for name, (metric, meaning) in MODELS.items():
            family = GaugeMetricFamily(metric, meaning, labels=["router_id", "model"])
            for router_id, router in shown:
                for model, (_, expected) in router.models.items():
                    family.add_metric([router_id, model], expected[name])
            yield family
        yield GaugeMetricFamily("pb_routers", "Routers of this worker", value=len(ranked))
        yield GaugeMetricFamily(
            "pb_routers_not_shown",
            "Routers beyond PB_METRICS_ROUTERS",
            value=len(ranked) - len(shown),
        )

    def _paced(self, router_id: str, value: bytes | None) -> None:
        if value is None:  # the router is gone
            self._routers.pop(router_id, None)
        else:
            self._router(router_id).shown = orjson.loads(value)

    def _alerted(self, router_id: str, value: bytes | None) -> None:
        alert = orjson.loads(value or b"{}")
        if alert.get("kind") == "source_parted":
            self._router(router_id).parted[alert["evidence"]["source"]] += 1

    def _decided(self, router_id: str, value: bytes | None) -> None:
        route = orjson.loads(value or b"{}")
        if not route.get("repeat", True):
            router = self._router(route["router_id"])
            router.expected_reward += max(0.0, route["expected_reward"])  # a counter may not fall
            router.decisions += 1
            router.budgeted += "session_left_usd" in route
            router.limited += route["reason"] == RULED_OUT
            router.rate(route.get("candidates") or [])
            router.plan(route)

    def _router(self, router_id: str) -> Router:
        if router_id not in self._routers:
            self._routers[router_id] = Router(self._partition_of(router_id))
        return self._routers[router_id]


def _periods(shown: list[tuple[str, Router]]) -> Iterator[Metric]:
    for name, (metric, meaning) in PERIODS.items():
        family = GaugeMetricFamily(metric, meaning, labels=["router_id", "period"])
        for router_id, router in shown:
            if name.startswith("forecast") and not router.shown.get("decided"):
                continue  # no traffic has been seen to forecast
            for standing in router.shown.get("budgets", ()):
                period = standing.get("line") or standing["period"]
                family.add_metric([router_id, period], _number(standing[name]))
        yield family


def _verifiers(shown: list[tuple[str, Router]]) -> Iterator[Metric]:
    known = [
        ([router_id, one["verifier"], model["model"]], model)
        for router_id, router in shown
        for one in router.shown.get("verifiers", ())
        for model in one["models"]
    ]
    labels = ["router_id", "verifier", "model"]
    for name, (metric, meaning) in SHARES.items():
        for part, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
            of = f"{meaning}{', 95% interval' if suffix else ''}"
            family = GaugeMetricFamily(f"{metric}{suffix}", of, labels=labels)
            for key, model in known:
                family.add_metric(key, model[name][part])
            yield family
    behind = GaugeMetricFamily(
        "pb_router_verifier_labels", "Labels of answers that have a verdict", labels=labels
    )
    for key, model in known:
        behind.add_metric(key, model["labels"])
    yield behind


def _number(value: float | str) -> float:
    """Return a published number, or a time as seconds since the epoch."""
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)
