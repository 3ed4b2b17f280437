"""Measure the router's response to models that fail: `python -m benchmarks.outages`.

One world in memory, driven as the service drives the engine: three models, contexts that tell them
apart, bills and rewards after the call's time. Model `middle` fails in one of several ways. The
router that is told how calls end stands beside one that is not, on the same requests. The times and
factors of `router_state/outages/availability.py` were chosen on this world.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import click
import numpy as np

from benchmarks.played import Played as Engine
from router_state.config import ModelConfig, Price, RouterConfig
from router_state.profiles import knobs_for

MODELS = {"small": Price(0.1, 0.4), "middle": Price(0.25, 2.0), "large": Price(1.25, 10.0)}
"""List prices of three sizes of one provider's models, in dollars per million tokens."""
QUALITY = {"small": (0.62, -0.10), "middle": (0.76, 0.02), "large": (0.84, 0.06)}
"""Mean reward, and its slope in the first feature."""
TOKENS = {"small": 400, "middle": 450, "large": 600}
"""Mean output tokens; input has 600."""
BUDGET_USD = 0.0013
"""Dollars per request: enough for the middle model, and for the large one on some."""
SECONDS, FAILS = 2.0, 0.4
"""Seconds of a call that is answered, and of one that fails."""
BEFORE, AFTER = 240.0, 120.0
"""Seconds before the failure, and behind it."""
LATELY = 10.0
"""Seconds over which a share is taken."""
Breaks = Callable[[float, np.random.Generator], str]


@dataclass(slots=True)
class Played:
    """The outcome of one run.

    Attributes:
        calls: (time, model, status) of every decision's first call.
        failures: when each failure was known; unanswered: when requests came that nobody answered.
        spent: dollars; earned: rewards.
    """

    calls: list[tuple[float, str, str]] = field(default_factory=list)
    failures: list[float] = field(default_factory=list)
    unanswered: list[float] = field(default_factory=list)
    spent: float = 0.0
    earned: list[float] = field(default_factory=list)


def outage(minutes: float) -> Breaks:
    """Return a failure of every call for so long."""
    return lambda now, rng: "error" if BEFORE <= now < BEFORE + 60.0 * minutes else "ok"


def half_broken(minutes: float) -> Breaks:
    """Return a failure of one call in five for so long."""

    def status(now: float, rng: np.random.Generator) -> str:
        broken = BEFORE <= now < BEFORE + 60.0 * minutes
        return "error" if broken and rng.random() < 0.2 else "ok"

    return status


def limited(minutes: float, *, rate: float) -> Breaks:
    """Return a limit of so many calls a second, as a bucket of a second."""
    left, at = rate, BEFORE

    def status(now: float, rng: np.random.Generator) -> str:
        nonlocal left, at
        if not BEFORE <= now < BEFORE + 60.0 * minutes:
            return "ok"
        left, at = min(left + (now - at) * rate, rate), now
        if left < 1.0:
            return "rate_limited"
        left -= 1.0
        return "ok"

    return status


def play(breaks: Breaks, *, minutes: float, rate: float, told: bool, seed: int) -> Played:
    """Play one world; `told`: whether bills say how calls ended."""
    rng, played = np.random.default_rng(seed), Played()
    models = {name: ModelConfig(price) for name, price in MODELS.items()}
    config = RouterConfig(models, BUDGET_USD, 5, "live", knobs_for("live", {"seed": seed}))
    engine, due = Engine.start(config), _Due()
    end = BEFORE + 60.0 * minutes + AFTER
    n = int(end * rate)
    for i, now in enumerate(np.sort(rng.uniform(0.0, end, n)).tolist()):
        for event in due.until(now):
            event()
        x = np.array([*rng.normal(size=4), 1.0])
        record = engine.decide(str(i), x, now=now)
        seen = record.candidates
        assert seen is not None
        others = [
            k for k, why in enumerate(seen.excluded) if not why and seen.models[k] != record.model
        ]
        order = sorted(others, key=lambda k: -seen.score(k))
        _call(
            engine,
            due,
            played,
            str(i),
            x,
            [record.model, *(seen.models[k] for k in order)],
            breaks,
            rng,
            now=now,
            told=told,
        )
    for event in due.until(np.inf):
        event()
    return played


def _call(
    engine: Engine,
    due: _Due,
    played: Played,
    request_id: str,
    x: np.ndarray,
    models: list[str],
    breaks: Breaks,
    rng: np.random.Generator,
    *,
    now: float,
    told: bool,
) -> None:
    """Call the models in their order until one answers, and let bills and the reward come."""
    at = now
    for attempt, model in enumerate(models):
        status = breaks(at, rng) if model == "middle" else "ok"
        if attempt == 0:
            played.calls.append((now, model, status))
        if status != "ok":
            at += FAILS
            played.failures.append(at)
            if told:
                bill = {"status": status, "model": model, "revision": attempt}
                due.add(at, partial(engine.settle, request_id, cost_usd=0.0, **bill))
            continue
        at += SECONDS
        level, slope = QUALITY[model]
        reward = float(np.clip(level + slope * x[0] + 0.05 * rng.normal(), 0.0, 1.0))
        out = TOKENS[model] * float(np.exp(0.3 * rng.normal() - 0.045))
        usd = MODELS[model].cost_usd(input_tokens=600, output_tokens=int(out))
        played.spent += usd
        played.earned.append(reward)
        due.add(at, partial(engine.settle, request_id, usd, model=model, revision=attempt))
        due.add(at + 1.0, partial(engine.learn, request_id, reward=reward, model=model))
        return
    played.unanswered.append(now)


class _Due:
    """Events that are still to happen, by their time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def add(self, at: float, event: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, event))

    def until(self, now: float) -> Iterator[Callable[[], object]]:
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]


def figures(played: Played, *, minutes: float) -> dict[str, float]:
    """Return what one run came to, see the table's head."""
    start, end = BEFORE, BEFORE + 60.0 * minutes
    known = sorted(played.failures)[4] if len(played.failures) > 4 else np.inf
    during = [(at, model, status) for at, model, status in played.calls if known <= at < end]
    lost = sum(status != "ok" for _, _, status in during)
    old = _share(played, start - 60.0, start)
    back = next(
        (
            float(after)
            for after in np.arange(0.5, AFTER, 0.5)
            if _share(played, end + after - 0.5, end + after - 0.5 + LATELY) >= 0.8 * old
        ),
        np.inf,
    )
    return {
        "share": old,
        "during": _share(played, start, end),
        "lost": lost / max(len(during), 1),
        "unanswered": len(played.unanswered) / len(played.calls),
        "back_seconds": back,
        "of_budget": played.spent / len(played.calls) / BUDGET_USD,
        "reward": float(np.mean(played.earned)),
    }


def _share(played: Played, start: float, end: float) -> float:
    chosen = [model for at, model, _ in played.calls if start <= at < end]
    return chosen.count("middle") / max(len(chosen), 1)


@click.command()
@click.option("--rate", default=10.0, help="Requests a second.")
@click.option("--seeds", default=3)
@click.option("--longest", default=60.0, help="Minutes of the longest outage.")
@click.option("--json", "as_json", is_flag=True)
def main(rate: float, seeds: int, longest: float, as_json: bool) -> None:
    """Compare the router that is told how calls end with one that is not."""
    worlds: dict[str, tuple[Callable[[], Breaks], float]] = {
        f"outage of {minutes:g} min": (partial(outage, minutes), minutes)
        for minutes in (1.0, 5.0, 20.0, 60.0)
        if minutes <= longest
    }
    worlds["one call in five fails"] = partial(half_broken, 5.0), 5.0
    worlds["limited to a third"] = partial(limited, 10.0, rate=rate / 3.0), 10.0
    found = []
    for name, (breaks, minutes) in worlds.items():
        for told in (True, False):
            runs = [
                figures(
                    play(breaks(), minutes=minutes, rate=rate, told=told, seed=seed),
                    minutes=minutes,
                )
                for seed in range(seeds)
            ]
            row = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
            row["back_seconds"] = max(run["back_seconds"] for run in runs)
            row["lost_worst"] = max(run["lost"] for run in runs)
            found.append({"world": name, "told": told, **row})
            if not as_json:
                shown = ", ".join(f"{key} {value:.4g}" for key, value in row.items())
                click.echo(f"{name}, {'told' if told else 'not told'}: {shown}")
    if as_json:
        click.echo(json.dumps(found))


if __name__ == "__main__":
    main()
