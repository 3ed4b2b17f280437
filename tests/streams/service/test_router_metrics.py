"""What a worker shows of a router's periods and sessions on /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from prometheus_client.samples import Sample

from ground.boundary import Headers
from schemas import AlertRaised, LambdaUpdated, RouteDecided
from schemas.families import FamilyEstimated
from streams.service.family_metrics import FamilyMetrics
from streams.service.router_metrics import RouterMetrics
from streams.service.watched_records import watched


def published(topic: str, *values: dict[str, Any]) -> list[Sample]:
    """Return the metrics after these values were published on a topic."""
    return after(*((topic, value) for value in values))


def after(*events: tuple[str, dict[str, Any]]) -> list[Sample]:
    """Return the metrics after these values were published on their topics."""
    metrics = RouterMetrics(10, partition_of=lambda router_id: 0)

    async def nothing(
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> Awaitable[object]:
        return asyncio.sleep(0)

    async def publish() -> None:
        send = watched(nothing, {f"pb.{name}": read for name, read in metrics.readers.items()})
        for topic, value in events:
            key = value["router_id"].encode()
            await (await send(topic, orjson.dumps(value), key, None, None))

    asyncio.run(publish())
    return [sample for family in metrics.collect() for sample in family.samples]


def shown(**changed: Any) -> dict[str, float]:
    """Return the metrics of the schema's example of a month, changed a little."""
    example: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][2]  # type: ignore[index]
    return {
        sample.name: sample.value
        for sample in published("pb.lambda", {**example, **changed})
        if sample.labels.get("period") == "month"
    }


def test_a_period_is_shown_with_its_money_its_forecast_and_its_end() -> None:
    found = shown()
    of = "pb_router_period"
    assert (found[f"{of}_charged_usd"], found[f"{of}_left_usd"]) == (18.0, 6.0)
    low, high = found[f"{of}_forecast_low_usd"], found[f"{of}_forecast_high_usd"]
    assert (low, found[f"{of}_forecast_usd"], high) == (23.0, 23.98, 25.0)
    ends = datetime.fromtimestamp(found[f"{of}_end_timestamp_seconds"], UTC)
    assert ends == datetime(2026, 12, 1, tzinfo=UTC)


def test_nothing_is_forecast_before_the_first_request() -> None:
    found = shown(decided=0)
    assert found["pb_router_period_left_usd"] == 6.0
    assert not [name for name in found if "forecast" in name]


def test_decisions_under_the_budget_of_a_session_are_counted_once() -> None:
    example: Any = RouteDecided.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    plain = {**example, "repeat": False}
    budgeted = {**plain, "session_left_usd": 0.5}
    limited = {**budgeted, "reason": "session_budget"}
    found = {
        sample.name: sample.value
        for sample in published("pb.routes", plain, budgeted, limited, {**limited, "repeat": True})
    }
    assert found["pb_router_session_budget_decisions_total"] == 2
    assert found["pb_router_session_budget_limited_total"] == 1
    assert found["pb_router_expected_reward_decisions_total"] == 3


STEPS = [
    {"model": "a", "expected_cost_usd": 1e-4, "verify": "tests", "accept_at": 0.5},
    {"model": "b", "expected_cost_usd": 5e-4, "probability": 0.4},
]


def test_plans_are_counted_and_compared_with_the_one_call_in_their_place() -> None:
    example: Any = RouteDecided.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    terms = {"bonus": 0.0, "penalty": 0.0}
    models = [
        {"model": "a", "mean": 0.5, "score": 0.5, "expected_cost_usd": 1e-4, "excluded": None},
        {"model": "b", "mean": 0.7, "score": 0.8, "expected_cost_usd": 5e-4, "excluded": None},
        {"model": "c", "mean": 0.9, "score": 0.9, "expected_cost_usd": 1e-2, "excluded": "ceiling"},
    ]
    alone = {**example, "repeat": False, "candidates": [{**one, **terms} for one in models]}
    looked = {**alone, "plan": STEPS[:1]}
    planned = {**alone, "plan": STEPS, "expected_reward": 0.75, "expected_cost_usd": 3e-4}
    repeat = {**planned, "repeat": True}
    found = {
        sample.name: sample.value
        for sample in published("pb.routes", alone, looked, planned, planned, repeat)
    }
    assert found["pb_router_plans_total"] == 2
    assert found["pb_router_plan_further_calls_total"] == pytest.approx(0.8)
    assert found["pb_router_plan_gain"] == pytest.approx(2 * 0.05)
    assert found["pb_router_plan_saved_usd"] == pytest.approx(2 * 2e-4)
    without = {sample.name for sample in published("pb.routes", alone)}
    assert without.isdisjoint({"pb_router_plan_gain", "pb_router_plan_saved_usd"})


def test_what_is_known_of_verifiers_is_shown_with_its_intervals() -> None:
    example: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    share = {"value": 0.9, "low": 0.8, "high": 0.95}
    model = {"model": "a", "passes_right": share, "stops_wrong": share, "verdicts": 9, "labels": 4}
    one = {"verifier": "judge", "usd": 4e-5, "exact": False, "accept_at": 0.5, "models": [model]}
    found = {
        sample.name: sample.value
        for sample in published("pb.lambda", {**example, "verifiers": [one]})
        if sample.labels.get("verifier") == "judge" and sample.labels.get("model") == "a"
    }
    for name in ("passes_right", "stops_wrong"):
        shown = [found[f"pb_router_verifier_{name}{suffix}"] for suffix in ("", "_low", "_high")]
        assert shown == [0.9, 0.8, 0.95]
    assert found["pb_router_verifier_labels"] == 4


OFFSET = {"value": 0.12, "low": 0.02, "high": 0.22}
JUDGE = 'judge v2: "x"\\'
"""A source whose name Prometheus has to escape."""


def test_labels_are_shown_with_what_was_asked_given_and_how_far_judges_are_off() -> None:
    example: Any = LambdaUpdated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    alert: Any = AlertRaised.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    asked = {"model": "a", "asked": 9, "answered": 4, "unasked": 2}
    judge = {
        "source": JUDGE,
        "gold": False,
        "pairs": 4,
        "models": [{"model": "a", "pairs": 4, "offset": OFFSET}],
    }
    said = {
        **example,
        "labels": {"want": 50, "per": "day", "asked": 7, "decided": 90, "models": [asked]},
        "sources": [{"source": "human", "gold": True}, judge, {"source": "new", "gold": False}],
    }
    parted = {**alert, "router_id": example["router_id"], "evidence": {"source": JUDGE}}
    events = [("pb.lambda", said), ("pb.alerts", {**parted, "kind": "source_parted"})] * 2
    samples = after(*events, ("pb.alerts", {**parted, "kind": "drift"}))
    found = {
        (sample.name.removeprefix("pb_router_"), *list(sample.labels.values())[1:]): sample.value
        for sample in samples
    }
    of = {name: found["source_" + name, JUDGE, "a"] for name in ("offset", "pairs")}
    assert of == {"offset": 0.12, "pairs": 4}
    assert found["source_offset_low", JUDGE, "a"] == 0.02
    assert (found["labels_wanted",], found["labels_period_asked",]) == (50, 7)
    names = ("asked", "answered", "unasked")
    assert [found["labels_" + name, "a"] for name in names] == [9, 4, 2]
    assert found["source_parted_total", JUDGE] == 2
    assert found["source_parted_total", "new"] == 0
    assert ("source_agreement", JUDGE) not in found


def test_families_are_shown_until_they_are_gone_or_others_own_them() -> None:
    metrics = FamilyMetrics(partition_of=lambda name: 1)

    def shown() -> dict[tuple[str, ...], float]:
        samples = [sample for family in metrics.collect() for sample in family.samples]
        return {(one.name, *one.labels.values()): one.value for one in samples}

    example: Any = FamilyEstimated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    listed = [{**example["listed"][0], "aside": aside} for aside in (True, False, True)]
    metrics.take_family("support", orjson.dumps({**example, "listed": listed}))
    assert shown() == {
        ("pb_family_members", "support"): 12,
        ("pb_family_members_left_out", "support"): 2,
        ("pb_family_apart", "support", "mistral-large"): 0.04,
        ("pb_family_newcomer_requests", "support", "mistral-large"): 61.5,
    }
    metrics.lost(frozenset({0}))
    assert shown()
    metrics.lost(frozenset({1}))
    assert not shown()
    metrics.take_family("support", orjson.dumps(example))
    metrics.take_family("support", None)
    assert not shown()
