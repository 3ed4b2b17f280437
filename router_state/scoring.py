"""Score every arm for one context."""

from __future__ import annotations

import math

from router_state.arms import WIDE, Arms
from router_state.config import Knobs, Vector
from router_state.cost_model import SPAN
from router_state.errors import NonFiniteInput, WrongContext
from router_state.record import Candidates

MIN_VARIANCE = 1e-12
MAX_NORM = 1e4
"""Of a context: an embedding has norm 1, a whitened entry is about 1. Above it single precision loses what tells prompts apart."""
MAX_STALE_STEPS = 1000
NOTHING = -math.inf
TIE = 1e-12


def project(arms: Arms, x: Vector) -> tuple[list[list[float]], list[float]]:
    """Return per arm [θᵀx, wᵀx] and the undecayed variance xᵀÂ⁻¹x, from one product with the stack.

    Args:
        x: context, shape (d,), last entry the bias 1.0.

    Raises:
        WrongContext: another shape or bias, or features out of all proportion.
        NonFiniteInput: a NaN or an infinity.
    """
    if x.shape != (arms.d,):
        raise WrongContext(f"the context has {x.shape[0] if x.ndim == 1 else x.shape} entries; the router has {arms.d} dimensions")
    if x.item(-1) != 1.0:
        raise WrongContext("the last entry of a context is the bias, 1.0")
    # Before the first product: one that overflows, or meets an infinity, sets a flag that numpy reports as a warning.
    norm = math.hypot(*x.tolist())
    if not norm <= MAX_NORM:
        if not math.isfinite(norm):
            raise NonFiniteInput("the context holds a NaN or an infinity")
        raise WrongContext(f"the features of the context have a norm of {norm:.3g}; {MAX_NORM:,.0f} is the limit")
    work = arms.work
    arms.flat.dot(x, work.rows)
    work.x[:] = x
    variance: list[float] = work.grid.dot(work.x_row, work.squares).tolist()
    projected: list[list[float]] = work.tail.tolist()
    if not math.isfinite(sum(variance) + sum(map(sum, projected))):
        raise NonFiniteInput("what an arm has learned is not finite")
    if arms.d >= WIDE:
        for k, n in enumerate(arms.pending):
            if n:
                tail = arms.tails[k, :n].dot(x)
                variance[k] -= tail.dot(tail).item()
    return projected, variance


def expected_costs(arms: Arms, projected: list[list[float]]) -> list[float]:
    """Return the expected cost of every arm in dollars, see `cost_model.predict`."""
    if not arms.prompt_costs:
        return arms.mean_cost_usd
    costs = []
    for (_, deviation), ratio, price in zip(projected, arms.ratio, arms.list_price, strict=True):
        predicted, least, most = ratio + deviation, ratio / SPAN, ratio * SPAN
        costs.append((least if predicted < least else most if predicted > most else predicted) * price)
    return costs


def score(
    arms: Arms,
    projected: list[list[float]],
    variance: list[float],
    costs: list[float],
    excluded: list[str | None],
    t: int,
    knobs: Knobs,
    per_log_price: float,
    per_dollar: float,
) -> tuple[Candidates, int]:
    """Return every arm's mean, bonus, penalty and expected cost, and the row with the best score, or -1 if there is a tie.

    mean θᵀx (shifted while the arm is under suspicion); bonus α·√(v ÷ max(γ^dt, 1/V_max)), so that idle arms become uncertain again
    (ParetoBandit Eq. 2 and 9; dt counts from the arm's last reward or last choice: one that awaits its rewards is not stale);
    penalty per_log_price·c̃ + per_dollar·ê.
    """
    penalties = arms.penalties(per_log_price)
    if per_dollar:
        penalties = [p + per_dollar * cost for p, cost in zip(penalties, costs, strict=True)]
    if arms.suspect:
        for row, suspicion in zip(projected, arms.suspicion, strict=True):
            row[0] += 0.0 if suspicion is None else suspicion.offset
    terms: list[float] = []
    alpha, gamma, least = knobs.alpha, knobs.gamma, 1.0 / knobs.v_max
    decay, last_update, last_played = arms.decay, arms.last_update, arms.last_played
    best, chosen, tied = NOTHING, -1, False
    for k, (mean, _) in enumerate(projected):
        v, updated, played = variance[k] / decay[k], last_update[k], last_played[k]
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
