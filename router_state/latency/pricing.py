"""Solve for the price of a wait: the smallest at which the winners over the last contexts keep the
target, given the price of a dollar."""

from __future__ import annotations

import math

import numpy as np

from router_state.arms import Arms
from router_state.config import Matrix
from router_state.kernel import (
    CLOSED,
    PRICES,
    WAIT_PRICES,
    WINDOW,
    Options,
    Window,
)
from router_state.latency.goal import MOST_CHARGED, TAIL
from router_state.latency.timing import Timing
from router_state.pacing.scoring import candidates

SLOW_SHARE = 0.1
"""Share of the target by which expected times may miss the target without an alert."""
SLOW_SOLUTIONS = 25
"""Number of solutions in a row that must miss the target before the alert: 200 decisions, as for a
floor of rewards.
"""
MOST_DEBT = 100.0
"""Most debt of waits, in targets: a debt is paid back over this many calls (`Debt`), and each call
can be at most one target faster than the target.
"""
MOST_PER_TARGET = 50.0
"""Largest price of a wait as long as the target, in reward: a fiftieth of the target then
outweighs every reward.
"""
LEAST_PER_SECOND, MOST_PER_SECOND = 1e-6, 50.0
"""Least positive and largest price of a second, in reward, where a second is worth dollars: beyond
the largest, money alone decides.
"""
PRICE_HALVINGS = 12
"""Halvings of the interval of the price's logarithm: the price is precise to half a percent."""
FARTHEST, LIMIT_HALVINGS = 100.0, 40
"""Largest limit of time that is tried for the fastest models, in targets, and the number of
halvings of its logarithm's interval.
"""


def weigh(
    timing: Timing,
    arms: Arms,
    window: Window,
    *,
    per_dollar: float,
    target_usd: float,
    now: float,
) -> None:
    """Solve for the price of a wait.

    Args:
        per_dollar: price of a dollar, in reward; target_usd: mean cost per request, in dollars,
            that this price was solved for.
    """
    timing.changed()
    if not timing.in_use:
        timing.per_unit = 0.0
        return
    most = timing.goal.most
    rewards = candidates(window, arms, beside=False)
    scores, costs = rewards.arrays()
    waits = _waits(timing, window, scores)
    if most is None:
        counted = np.minimum(waits, MOST_CHARGED) * WAIT_PRICES[: window.size, None]
        timing.per_unit = _of_seconds(
            timing.goal.usd_per_second or 0.0,
            scores,
            costs,
            counted,
            target_usd=target_usd,
            start=per_dollar,
        )
        return
    scored = scores - per_dollar * costs
    counted = np.minimum(waits, MOST_CHARGED * most) * WAIT_PRICES[: window.size, None]
    # The waits are evaluated at the two prices in force, each of which was solved given the other.
    won = (scored - timing.per_unit * counted).argmax(1)
    timing.expected = float(waits[np.arange(len(won)), won].mean())
    options = Options.of(scored, counted)
    if arms.planner is not None:
        options = arms.planner.planned(options, rewards, per_dollar=per_dollar)
        timing.expected = options.spend(timing.per_unit)
    _review(timing, window, scores, costs, waits, now=now)
    timing.target = timing.debt.target(most, float(waits.min(1).mean()))
    price = options.price(target=timing.target, start=timing.per_unit)
    highest = MOST_PER_TARGET / most
    timing.per_unit = highest if price is None else min(price, highest)
    timing.debt.bound(most)
    timing.debt.usd = min(timing.debt.usd, MOST_DEBT * most)


def _of_seconds(
    usd_per_second: float,
    scores: Matrix,
    costs: Matrix,
    seconds: Matrix,
    *,
    target_usd: float,
    start: float,
) -> float:
    """Return the price of a second, in reward, where a second is worth `usd_per_second` dollars:
    the price of these dollars once waits are priced, too.
    """

    def too_low(per_second: float) -> bool:
        per_dollar = Options.of(scores - per_second * seconds, costs).price(
            target=target_usd, start=start
        )
        return per_dollar is None or per_dollar * usd_per_second > per_second

    low, high = LEAST_PER_SECOND, MOST_PER_SECOND
    if not too_low(low):
        return 0.0
    for _ in range(PRICE_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return high


def _waits(timing: Timing, window: Window, scores: Matrix, limit: float | None = None) -> Matrix:
    """Return expected waits of the window's requests, shape (size, K), and 0 where an arm can't be
    chosen; `limit` replaces the target's limit of time.
    """
    waits, _ = timing.waits(window.rows(), window.size, limit)
    return np.where(scores > -0.5 * CLOSED, waits, CLOSED)


def _review(
    timing: Timing, window: Window, scores: Matrix, costs: Matrix, waits: Matrix, *, now: float
) -> None:
    """Raise an alert if the target is surely missed, and name a target or a budget that would
    work. One alert is raised until the target is met again.
    """
    most = timing.goal.most or 1.0
    missed = window.size > WINDOW // 2 and timing.expected > (1.0 + SLOW_SHARE) * most
    timing.short = timing.short + 1 if missed else 0
    if timing.short != SLOW_SOLUTIONS:
        return
    goal = timing.goal
    tail = goal.p95_seconds is not None
    evidence = {
        "of": goal.of,
        "p95_ms" if tail else "mean_ms": 1e3 * (goal.p95_seconds or most),
        "expected_share" if tail else "expected_ms": timing.expected * (1 if tail else 1e3),
        "reachable_ms": 1e3 * _reachable(timing, window, scores, waits),
        "needed_usd_per_request": _needed(scores, costs, waits, most),
    }
    timing.journal.alert("latency_unreachable", timing.expected / most, evidence, now=now)


def _reachable(timing: Timing, window: Window, scores: Matrix, waits: Matrix) -> float:
    """Return the smallest target, in seconds, that the fastest models would meet whatever they
    cost.
    """
    if timing.goal.p95_seconds is None:
        return float(waits.min(1).mean())
    low, high = timing.goal.p95_seconds, timing.goal.p95_seconds * FARTHEST
    for _ in range(LIMIT_HALVINGS):
        middle = math.sqrt(low * high)
        if float(_waits(timing, window, scores, middle).min(1).mean()) > TAIL:
            low = middle
        else:
            high = middle
    return high


def _needed(scores: Matrix, costs: Matrix, waits: Matrix, most: float) -> float | None:
    """Return the mean dollars of a request if the target were met whatever that costs; None: no
    model is fast enough.
    """
    price = Options.of(scores, waits).price(target=most)
    if price is None:
        return None
    won = (scores - price * waits).argmax(1)
    return float((costs / PRICES[: len(costs), None])[np.arange(len(won)), won].mean())
