"""Score every arm for one context."""

from __future__ import annotations

import math

import numpy as np

from router_state.arms import Arms
from router_state.config import Knobs, Vector
from router_state.costs.cost_model import expectations
from router_state.errors import NonFiniteInput, WrongContext
from router_state.learning.stack import WIDE
from router_state.record import Candidates

MIN_VARIANCE = 1e-12
"""Least xᵀA⁻¹x of a bonus: rounding may leave less than nothing."""
MAX_NORM = 1e4
"""Of a context: an embedding has norm 1, a whitened entry is about 1. Above it single precision
loses what tells prompts apart."""
MAX_STALE_STEPS = 1000
"""Steps of the clock that an idle arm may become uncertain by."""
TIE = 1e-12
"""Scores that differ by less are equal."""


# Plain tuples: on the hot path a class costs more than the sums that it holds.
Projection = tuple[list[list[float]], list[float], list[float]]
"""What the arms say of one context, by position: pairs [θᵀx, wᵀx], the variances xᵀÂ⁻¹x, not
decayed, and the expected costs in dollars."""
Weights = tuple[float, float, float]
"""λ_t, and what a score weighs money with, in reward: the price on the logarithmic scale, and a
dollar."""


def project(arms: Arms, x: Vector, tokens: float = 0.0) -> Projection:
    """Return what the arms say of a context, from one product with the stack.

    Args:
        x: context, shape (d,), last entry the bias 1.0.
        tokens: input tokens that are counted apart, see `prompt_tokens`.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    check(x, arms.d)
    stack = arms.stack
    work = stack.work
    stack.flat.dot(x, work.rows)
    work.x[:] = x
    variances: list[float] = work.grid.dot(work.x_row, work.squares).tolist()
    means: list[list[float]] = work.tail.tolist()
    if arms.d >= WIDE:
        for k, belief in enumerate(arms.beliefs):
            if belief.pending:
                tail = belief.tails[: belief.pending].dot(x)
                variances[k] -= float(tail.dot(tail))
    if stack.prompt_costs:
        costs = expectations(arms.costs, arms.bills.noise, [exponent for _, exponent in means])
    else:
        costs = arms.mean_costs()
    if arms.tokens.in_use:
        costs = [
            (cost + tokens * model.per_input_token) * model.paid
            for cost, model in zip(costs, arms.costs, strict=True)
        ]
    # The product above has θᵀx and wᵀx in it, times 0: what is not finite in one of them is none of
    # the variances either.
    if not math.isfinite(sum(variances, 0.0) + sum(costs, 0.0)):
        raise NonFiniteInput("what an arm has learned is not finite")
    return means, variances, costs


def check(x: Vector, d: int) -> None:
    """Raise what is wrong with a context, see `project`. It is finite before the first product: one
    that overflows, or meets an infinity, sets a flag that numpy reports as a warning."""
    if x.shape != (d,):
        raise WrongContext(
            f"the context has {x.shape[0] if x.ndim == 1 else x.shape} entries; the router has "
            f"{d} dimensions"
        )
    if x.item(-1) != 1.0:
        raise WrongContext("the last entry of a context is the bias, 1.0")
    if d >= WIDE:
        with np.errstate(all="ignore"):
            square = float(x.dot(x))
        # A product is enough for most; it is not as exact as `hypot`, which takes a while for many.
        if square < 0.99 * MAX_NORM**2:
            return
    norm = math.hypot(*x.tolist())
    if not norm <= MAX_NORM:
        if not math.isfinite(norm):
            raise NonFiniteInput("the context holds a NaN or an infinity")
        raise WrongContext(
            f"the features of the context have a norm of {norm:.3g}; {MAX_NORM:,.0f} is the limit"
        )


def score(
    arms: Arms,
    seen: Projection,
    *,
    excluded: list[str | None],
    t: int,
    knobs: Knobs,
    weights: Weights,
) -> tuple[Candidates, int]:
    """Return every arm's mean, bonus, penalty and expected cost, and the position of the best
    score, or -1 if there is a tie.

    mean θᵀx (shifted while the arm is under suspicion); bonus α·√(v ÷ max(γ^dt, 1/V_max)), so that
    idle arms become uncertain again (ParetoBandit Eq. 2 and 9; dt counts from the arm's last reward
    or last choice: one that awaits its rewards is not stale); penalty per_log_price·c̃ +
    per_dollar·ê.
    """
    means, variances, costs = seen
    penalties = penalties_of(arms, costs, weights)
    if arms.suspect:
        shift(arms, means)
    terms: list[float] = []
    alpha, gamma, least = knobs.alpha, knobs.gamma, 1.0 / knobs.v_max
    best, chosen, tied = -math.inf, -1, False
    # One pass without intermediate lists: this loop is a third of a decision.
    for k, belief in enumerate(arms.beliefs):
        mean, v = means[k][0], variances[k] / belief.decay
        updated, played = belief.last_update, belief.last_played
        steps = t - (updated if updated > played else played)
        if steps > 0 and gamma < 1.0:
            left = gamma ** (steps if steps < MAX_STALE_STEPS else MAX_STALE_STEPS)
            v /= left if left > least else least
        bonus = alpha * math.sqrt(v if v > MIN_VARIANCE else MIN_VARIANCE)
        terms += (mean, bonus, costs[k])
        if excluded[k] is None:
            value = mean + bonus - penalties[k]
            if value - best >= TIE:
                best, chosen, tied = value, k, False
            elif best - value < TIE:
                tied = True
    return Candidates(arms.names, terms, penalties, excluded), -1 if tied else chosen


def score_drawn(
    arms: Arms,
    seen: Projection,
    *,
    drawn: list[float],
    excluded: list[str | None],
    weights: Weights,
) -> tuple[Candidates, int]:
    """As `score`, where arms learn together: the bonus is what the draw in force adds to each mean,
    see `doubt`."""
    means, _, costs = seen
    penalties = penalties_of(arms, costs, weights)
    if arms.suspect:
        shift(arms, means)
    terms: list[float] = []
    best, chosen, tied = -math.inf, -1, False
    k = -1
    for (mean, _), bonus, cost, penalty, why in zip(
        means, drawn, costs, penalties, excluded, strict=True
    ):
        k += 1
        terms += (mean, bonus, cost)
        if why is None:
            value = mean + bonus - penalty
            if value - best >= TIE:
                best, chosen, tied = value, k, False
            elif best - value < TIE:
                tied = True
    return Candidates(arms.names, terms, penalties, excluded), -1 if tied else chosen


def penalties_of(arms: Arms, costs: list[float], weights: Weights) -> list[float]:
    """Return what each arm's price takes off its score: per_log_price·c̃ + per_dollar·ê."""
    _, per_log_price, per_dollar = weights
    if not per_log_price:
        return [per_dollar * cost for cost in costs]
    penalties = arms.penalties(per_log_price)
    if not per_dollar:
        return penalties
    return [p + per_dollar * cost for p, cost in zip(penalties, costs, strict=True)]


def shift(arms: Arms, means: list[list[float]]) -> None:
    """Add to the means what is assumed of arms under suspicion."""
    for pair, arm in zip(means, arms, strict=True):
        pair[0] += 0.0 if arm.suspicion is None else arm.suspicion.offset
