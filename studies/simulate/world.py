"""Apply a scenario to a history: its effects on each request, by index."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from schemas.budgets import PeriodBudget
from schemas.latency import FirstTokenPriced, LatencyTarget
from schemas.routers import ModelDeclared, RouterDeclared
from studies.simulate.describe import describe
from studies.simulate.scenario import (
    Added,
    BadScenario,
    Budget,
    Delay,
    Duplication,
    Latency,
    Loss,
    Outage,
    Point,
    PriceChange,
    Quality,
    Removed,
    Scenario,
    ScenarioEvent,
    Slower,
    Traffic,
)
from studies.simulate.times import Seconds

RAMP_STEPS = 20
"""Steps of a change that comes gradually."""
_MASK = (1 << 64) - 1
"""Mask of 64 bits."""


def uniform(seed: int, *numbers: int) -> float:
    """Return a number in [0, 1) that depends on the arguments alone (SplitMix64)."""
    state = seed & _MASK
    for number in numbers:
        # A hash instead of a stream, so that the draw of one event depends on no other.
        state = (state ^ number) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15 & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        state ^= state >> 31
    return state / 2**64


@dataclass(frozen=True, slots=True)
class Placed:
    """An event of the scenario from index `start` up to, not including, `end`."""

    event: ScenarioEvent
    start: int
    end: int

    def progress(self, index: int) -> float:
        """Return the part of the event that is in force, 0 to 1; a ramp moves in steps."""
        if not self.start <= index < self.end:
            return 0.0
        over = self.event.over if isinstance(self.event, PriceChange | Quality) else 0
        if over <= index - self.start:
            return 1.0
        return ((index - self.start) * RAMP_STEPS // over + 1) / RAMP_STEPS


@dataclass(frozen=True, slots=True)
class Mark:
    """The place where something begins or ends, for reports."""

    index: int
    label: str


class World:
    """The effects of a scenario on each request.

    Args:
        requests: how many there are; shares refer to it.
        index_of: indices of the first requests at or after the scenario's times.
        models: names that history or its data know.

    Raises:
        BadScenario: an event or a policy names an unknown model, or a model that joins has no
        price.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        requests: int,
        index_of: Mapping[datetime, int],
        models: set[str],
        declared: set[str],
    ) -> None:
        self.scenario = scenario
        self.requests = requests

        place = partial(_index_at, index_of=index_of, requests=requests)
        self.placed = [
            Placed(event, place(event.at, default=0), place(event.until, default=_MASK))
            for event in scenario.events
        ]
        _require_known(scenario, models, declared)
        self._changes = sorted(
            {index for placed in self.placed for index in _change_points(placed)}
        )
        self._prices = [p for p in self.placed if isinstance(p.event, PriceChange)]
        self._qualities = [p for p in self.placed if isinstance(p.event, Quality)]
        self._outages = [p for p in self.placed if isinstance(p.event, Outage)]
        self._slower = [p for p in self.placed if isinstance(p.event, Slower)]
        self._traffic = [p for p in self.placed if isinstance(p.event, Traffic)]
        self._feedback = [p for p in self.placed if isinstance(p.event, Delay | Loss | Duplication)]

    @property
    def marks(self) -> list[Mark]:
        """Return where events begin and end, within the history."""
        marks = []
        for placed in self.placed:
            label = placed.event.label or describe(placed.event)
            marks.append(Mark(placed.start, label))
            if placed.end < self.requests:
                marks.append(Mark(placed.end, f"end: {label}"))
        return sorted((m for m in marks if m.index < self.requests), key=lambda mark: mark.index)

    def era(self, index: int) -> int:
        """Return a number that changes whenever the declaration may."""
        return bisect_right(self._changes, index)

    def router(self, base: RouterDeclared, index: int) -> RouterDeclared:
        """Return what the operator declares at this index."""
        models = dict(base.models)
        # Without verdicts no plan can be followed: each request has one call. What was seen of the
        # answer before is told in terms of verifiers.
        money: dict[str, object] = {"max_attempts": 1} if base.verifiers else {}
        for placed in self.placed:
            event, active = placed.event, placed.start <= index < placed.end
            match event:
                case Added():
                    self._join(models, event, active=active)
                case Removed() if active:
                    models.pop(event.model, None)
                case Outage() if active and event.announced:
                    models.pop(event.model, None)
                case PriceChange() if active and event.announced and event.model in models:
                    factor = event.factor ** placed.progress(index)
                    models[event.model] = _repriced(models[event.model], factor)
                case Budget() if active:
                    money |= _money(event, base)
                case Latency() if active:
                    money |= _waits(event)
        return base.model_copy(update={"models": models, **money})

    def _join(self, models: dict[str, ModelDeclared], event: Added, *, active: bool) -> None:
        # History may have declared it earlier; in the scenario it joins only here.
        declared = models.pop(event.model, None)
        if not active:
            return
        given = event.input_price_per_m, event.output_price_per_m
        prices = (
            given
            if None not in given
            else (declared.input_price_per_m, declared.output_price_per_m)
            if declared
            else None
        )
        assert prices is not None
        models[event.model] = ModelDeclared(
            input_price_per_m=prices[0] or 0.0,
            output_price_per_m=prices[1] or 0.0,
            onboarding_pulls=event.onboarding_pulls,
        )

    def outcome(
        self, index: int, model: str, reward: float, cost_usd: float
    ) -> tuple[float, float]:
        """Return what a call of this model earns and costs here."""
        for placed in self._outages:
            if placed.event.model == model and placed.start <= index < placed.end:  # type: ignore[union-attr]
                return 0.0, 0.0
        for placed in self._prices:
            assert isinstance(placed.event, PriceChange)
            if placed.event.model == model:
                cost_usd *= placed.event.factor ** placed.progress(index)
        for placed in self._qualities:
            assert isinstance(placed.event, Quality)
            if placed.event.model == model and (progress := placed.progress(index)) > 0.0:
                reward = _changed(placed.event, reward, progress)
        return reward, cost_usd

    def times(self, index: int, model: str, times: Seconds) -> Seconds:
        """Return the times of a call as they are in the scenario: slower where it says so."""
        for placed in self._slower:
            assert isinstance(placed.event, Slower)
            if placed.event.model == model and placed.start <= index < placed.end:
                factor = placed.event.factor
                times = Seconds(*(None if one is None else factor * one for one in times))
        return times

    def copies(self, index: int) -> int:
        """Return how often this request is made."""
        if not self._traffic:
            return 1
        factor = self.traffic(index)
        # The differences of a running total: n requests become n·factor, evenly spread, without a
        # draw. 1e-9, as ten times 0.1 falls short of 1 in binary.
        return int((index + 1) * factor + 1e-9) - int(index * factor + 1e-9)

    def traffic(self, index: int) -> float:
        """Return the factor by which the number of requests in the same time is multiplied."""
        factor = 1.0
        for placed in self._traffic:
            assert isinstance(placed.event, Traffic)
            if placed.start <= index < placed.end:
                factor *= placed.event.factor
        return factor

    def lags(self, index: int, copy: int, what: str, lag: int) -> list[int]:
        """Return the number of decisions after which the feedback comes: empty if the feedback is
        lost, two numbers if it comes twice.
        """
        # A lag counts decisions: with twice the traffic twice as many are made in the same hours.
        lag = round(lag * self.traffic(index)) if self._traffic else lag
        times, number = [lag], 0 if what == "costs" else 1
        for order, placed in enumerate(self._feedback):
            event = placed.event
            assert isinstance(event, Delay | Loss | Duplication)
            if not placed.start <= index < placed.end or event.what not in ("both", what):
                continue
            if isinstance(event, Delay):
                times = [event.to if event.to is not None else at + (event.by or 0) for at in times]
            elif uniform(self.scenario.seed, index, copy, number, order) < event.share:
                times = [] if isinstance(event, Loss) else times * 2
        return times


def _index_at(
    point: Point | None, *, default: int, index_of: Mapping[datetime, int], requests: int
) -> int:
    """Return the index of a point of a scenario: `default` for None."""
    if point is None:
        return default
    if isinstance(point, datetime):
        return index_of[point]
    return point if isinstance(point, int) else int(float(point[:-1]) / 100.0 * requests)


def _require_known(scenario: Scenario, models: set[str], declared: set[str]) -> None:
    """Check the models that a scenario names, see `World`. Raises BadScenario."""
    known = models | {
        e.model for e in scenario.events if isinstance(e, Added) and e.input_price_per_m is not None
    }
    problems = [
        problem
        for event in scenario.events
        if (problem := _problem(event, known, declared)) is not None
    ]
    problems += [
        f"policy {policy.name!r}: model {policy.model!r} is {_why_unknown(policy.model, declared)}"
        for policy in scenario.policies
        if policy.model is not None and policy.model not in known
    ]
    if problems:
        count = (
            f"{len(problems)} of {len(scenario.events) + len(scenario.policies)} events and "
            "policies can't be played"
        )
        raise BadScenario(
            "\n".join(
                [
                    *problems,
                    f"{count}, so nothing was; known models: {', '.join(sorted(known))}",
                ]
            )
        )


def _problem(event: ScenarioEvent, known: set[str], declared: set[str]) -> str | None:
    """Return why an event can't be played."""
    model = getattr(event, "model", None)
    if model is not None and model not in known:
        return f"{event.kind}: model {model!r} is {_why_unknown(model, declared)}"
    if (
        isinstance(event, Added)
        and None in (event.input_price_per_m, event.output_price_per_m)
        and model not in declared
    ):
        return (
            f"add: {model!r} was never declared, so input_price_per_m and output_price_per_m are "
            "needed"
        )
    return None


def _why_unknown(model: str, declared: set[str]) -> str:
    return (
        "declared, but history never called it: nothing says what it earns or costs"
        if model in declared
        else "unknown"
    )


def _change_points(placed: Placed) -> list[int]:
    points = [placed.start, placed.end]
    if isinstance(placed.event, PriceChange) and placed.event.over:
        points += [
            # Rounded up: the first index at which `progress` has taken the step.
            placed.start + -(-step * placed.event.over // RAMP_STEPS)
            for step in range(RAMP_STEPS)
        ]
    return points


def _money(event: Budget, base: RouterDeclared) -> dict[str, object]:
    """Return the fields of a declaration that a change of budget sets."""
    found: dict[str, object] = {}
    if event.usd is not None:
        found["budget"] = PeriodBudget(usd=event.usd, per=event.per, timezone=event.timezone)
        found["budget_usd_per_request"] = None
    elif "usd_per_request" in event.model_fields_set:
        found["budget_usd_per_request"] = event.usd_per_request
    elif event.factor is not None and base.budget_usd_per_request is not None:
        found["budget_usd_per_request"] = event.factor * base.budget_usd_per_request
    if event.min_reward is not None:
        found["min_reward"] = event.min_reward
    return found


def _waits(event: Latency) -> dict[str, object]:
    """Return the fields of a declaration that a change of latency sets."""
    found: dict[str, object] = {"latency_target": None, "usd_per_second": None}
    if event.usd_per_second is not None:
        price = event.usd_per_second
        first = FirstTokenPriced(first_token=price)
        found["usd_per_second"] = first if event.of == "first_token" else price
    elif event.p95_ms is not None or event.mean_ms is not None:
        found["latency_target"] = LatencyTarget(
            p95_ms=event.p95_ms, mean_ms=event.mean_ms, of=event.of
        )
    return found


def _repriced(model: ModelDeclared, factor: float) -> ModelDeclared:
    prices: dict[str, object] = {
        "input_price_per_m": model.input_price_per_m * factor,
        "output_price_per_m": model.output_price_per_m * factor,
    }
    if model.price_above is not None:
        tiers = [
            one.model_copy(
                update={
                    "input_price_per_m": one.input_price_per_m * factor,
                    "output_price_per_m": one.output_price_per_m * factor,
                }
            )
            for one in model.price_above
        ]
        prices["price_above"] = tuple(tiers)
    return model.model_copy(update=prices)


def _changed(event: Quality, reward: float, progress: float) -> float:
    if event.to is not None:
        target = event.to
    else:
        target = reward + event.shift if event.shift is not None else reward * (event.factor or 0.0)
    return min(1.0, max(0.0, reward + progress * (min(1.0, max(0.0, target)) - reward)))
