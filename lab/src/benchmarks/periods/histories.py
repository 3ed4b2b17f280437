"""Drawn histories: when requests come in a month and the week before, what they would earn and
cost, and how late one learns of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from benchmarks.arena import Array, declared, delays
from benchmarks.elsewhere.drawn import drawn
from benchmarks.elsewhere.world import World
from benchmarks.periods.shapes import HOURS, SYNTHETIC
from benchmarks.protocol import declaration, prompts
from router_state.config import RouterConfig

EVENTS = ("nothing", "launch", "outage", "quiet week", "begins on a Friday")
MONTHS = ((2026, 2), (2026, 3), (2026, 4), (2026, 6), (2026, 8))
FRIDAYS = ((2026, 5), (2027, 1))
LATE = (0.0, 30.0, 100.0, 300.0)
LEVELS = (3.0e-4, 6.62e-4, 1.87e-3)
REQUESTS = 5000
"""Requests of a month of usual traffic."""
WEEK = 7.0 * 24.0
NOISE = 0.15
"""Deviation of the logarithm of a day's traffic."""


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """n requests: what is only learned from, a week before the month, then the month.

    Attributes:
        made: what they would earn and cost.
        times: shape (n,), seconds since the epoch.
        month: the month's requests.
        usd: the month's budget; usual: requests that the month before would let one expect.
        delay: shape (n,), how many more requests are decided before bill and reward come.
        late: mean of it.
    """

    made: Made
    times: Array
    month: slice
    usd: float
    usual: float
    delay: Array
    event: str
    world: str
    late: float


def _epoch(year: int, month: int) -> float:
    return datetime(year, month, 1, tzinfo=UTC).timestamp()


def _arrivals(
    event: str, begin: float, end: float, shape: Array, per_hour: float, rng: np.random.Generator
) -> Array:
    """Return the times of requests, from a week before the month's begin until its end."""
    start = begin - WEEK * 3600.0
    hours = int((end - start) / 3600.0)
    first = int(datetime.fromtimestamp(start, UTC).weekday() * 24)
    rates = per_hour * shape[(first + np.arange(hours)) % HOURS]
    days = np.exp(NOISE * rng.normal(size=hours // 24 + 1) - 0.5 * NOISE**2)
    rates = rates * np.repeat(days, 24)[:hours]
    month = np.arange(int(WEEK), hours)
    at = int(rng.integers(month[0] + 5 * 24, month[-1] - 5 * 24))
    if event == "launch":
        rates[at:] *= 3.0
    elif event == "outage":
        rates[at : at + 48] = 0.0
    elif event == "quiet week":
        rates[at : at + 168] *= 0.3
    counts = rng.poisson(rates)
    times = start + 3600.0 * (np.repeat(np.arange(hours), counts) + rng.random(counts.sum()))
    ordered: Array = np.sort(times)
    return ordered


class Made(NamedTuple):
    """The outcomes of requests, rewards and costs; the first `warm` are only learned from."""

    warm: int
    contexts: Array
    rewards: Array
    quality: Array
    costs: Array
    models: tuple[str, ...]
    config: RouterConfig
    level: float


def draw(number: int, *, requests: int = REQUESTS, shape: Array | None = None) -> History:
    """Return a history by its number: even ones of the paper's prompts, odd ones of a drawn world.

    Args:
        requests: of a month of usual traffic.
        shape: the week's, instead of a drawn one.
    """
    rng = np.random.default_rng([36, number])
    event = EVENTS[number // 2 % len(EVENTS)]
    months = FRIDAYS if event == "begins on a Friday" else MONTHS
    year, month = months[int(rng.integers(len(months)))]
    begin, end = _epoch(year, month), _epoch(year + month // 12, month % 12 + 1)
    if shape is None:
        shape = SYNTHETIC[str(rng.choice(sorted(SYNTHETIC)))]
    hours = (end - begin) / 3600.0
    times = _arrivals(event, begin, end, shape, requests / hours, rng)
    made = (_of_paper if number % 2 == 0 else _of_world)(number, len(times), rng)
    times = np.concatenate([times[0] - np.arange(made.warm, 0, -1.0), times])
    inside = slice(int(np.searchsorted(times, begin)), len(times))
    late, n = float(rng.choice(LATE)), len(times)
    delay = delays(n, late, "fixed" if rng.random() < 0.5 else "exponential", rng)
    return History(
        made=made,
        times=times,
        month=inside,
        usd=made.level * (n - inside.start),
        usual=float(requests),
        delay=np.minimum(delay, 300.0),
        event=event,
        world="paper" if number % 2 == 0 else "drawn",
        late=late,
    )


def _of_paper(number: int, n: int, rng: np.random.Generator) -> Made:
    val, test = prompts("val"), prompts("test")
    first, then = rng.permutation(len(val)), rng.integers(len(test), size=n)
    level = float(rng.choice(LEVELS))
    rewards = np.concatenate([val.rewards[first], test.rewards[then]])
    return Made(
        len(first),
        np.concatenate([val.contexts[first], test.contexts[then]]),
        rewards,
        rewards,
        np.concatenate([val.costs[first], test.costs[then]]),
        tuple(val.models),
        declaration(val, None),
        level,
    )


def _fits(world: World) -> bool:
    """Tell whether a world is small, stays as it is, and has a budget that is four times what its
    cheapest model costs and less than its best one does."""
    if not world.stationary or len(world.models) > 8 or world.contexts.shape[1] > 26:
        return False
    costs, quality = world.costs[-1000:].mean(0), world.quality[-1000:].mean(0)
    return bool(4.0 * costs.min() <= world.budget <= 0.7 * costs[quality.argmax()])


def _of_world(number: int, n: int, rng: np.random.Generator) -> Made:
    """Return a drawn world whose models and prompts stay as they are, its measured rows again and
    again; its budget is one that binds, and that bears a tripled traffic."""
    world = next(
        found for k in range(1000) if _fits(found := drawn(40_000 + 1000 * number + k, seconds=1.0))
    )
    m = len(world)
    first, then = np.arange(m - 1000), m - 1000 + rng.integers(1000, size=n)
    rows = np.concatenate([first, then])
    prices = dict(zip(world.models, world.prices, strict=True))
    config = declared(prices, None, world.contexts.shape[1])
    return Made(
        len(first),
        world.contexts[rows],
        world.rewards[rows],
        world.quality[rows],
        world.costs[rows],
        world.models,
        config,
        world.budget,
    )
