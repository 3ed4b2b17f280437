"""Compute scores and expected costs of every arm for the window of the dual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router_state.errors import NonFiniteInput
from router_state.kernel.cost_means import bounded_exponent
from router_state.kernel.cost_model import CostModel
from router_state.kernel.dual import Options
from router_state.kernel.elementary import exp
from router_state.kernel.linear import finite, room
from router_state.kernel.regression import Regression
from router_state.kernel.words import (
    Array,
    Floats,
    Index,
    Real,
    Singles,
    behind,
    cfunc,
    known,
    pure,
    singles,
    vectored,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router_state.config import Vector

LANES = 4
"""Entries that a product takes at once: vectors are filled up with zeros."""


def options(
    contexts: Array,
    n: Index,
    d: Index,
    *,
    rewards: Sequence[Regression],
    deviations: Sequence[float],
    lots: Vector,
    shifts: Sequence[float] | None,
    models: Sequence[CostModel],
    tokens: Vector,
    prices: Array,
) -> Options:
    """Return present scores and expected costs of every arm for n contexts.

    Args:
        contexts: n rows of d, or more.
        deviations: of the draw of each arm's score.
        lots: standard normal numbers in place of draws, n rows of K.
        shifts: what is added to every score of an arm.
        models: the cost model of each arm.
        tokens: by context, input tokens that are counted apart.
        prices: by context, its own price of a dollar as a share of everybody's.

    Raises:
        NonFiniteInput: a score or a cost is not finite.
    """
    K: Index = len(rewards)
    held: Singles = singles(contexts, n * d)
    if len(lots) < n * K or len(prices) < n or len(tokens) < n:
        raise ValueError("arrays do not fit")
    lot: Floats = known(lots, len(lots))
    own: Floats = known(prices, len(prices))
    said: Floats = known(tokens, len(tokens))
    if not len(models) == len(deviations) == K or (shifts is not None and len(shifts) != K):
        raise ValueError(f"an entry for each of {K} arms is wanted")
    found = Options(n, K)
    # Of each arm the coefficients of scores and of costs, then five numbers; then a context.
    size: Index = (d + LANES - 1) // LANES * LANES
    width: Index = 2 * size + 5
    space: Floats = room(K * width + size)
    for k in range(K):
        arm: Floats = behind(space, k * width)
        lay_out(rewards[k], models[k], d, arm, size)
        arm[2 * size] = 0.0 if shifts is None else shifts[k]
        arm[2 * size + 4] = deviations[k]
    score_rows(held, n, d, space, K, lot, own, said, found.values)
    if not finite(found.values, 0, 2 * n * K):
        raise NonFiniteInput("a context of the window, or what an arm has learned, is not finite")
    return found


def keep(contexts: Array, slot: Index, x: Vector, d: Index) -> None:
    """Write a context of d dimensions into its row, in single precision."""
    if slot < 0:
        raise ValueError(f"there is no row {slot}")
    held: Singles = singles(contexts, (slot + 1) * d)
    context: Floats = known(x, d)
    for i in range(d):
        held[slot * d + i] = context[i]


@pure
@vectored
def score_rows(
    held: Singles,
    n: Index,
    d: Index,
    space: Floats,
    K: Index,
    lot: Floats,
    own: Floats,
    said: Floats,
    scores: Floats,
) -> None:
    """Write n scores of each of K arms, then n costs of each; `space` holds the arms as `options`
    lays them out."""
    costs: Floats = behind(scores, K * n)
    size: Index = (d + LANES - 1) // LANES * LANES
    width: Index = 2 * size + 5
    x: Floats = behind(space, K * width)
    for i in range(d, size):
        x[i] = 0.0
    for row in range(n):
        for i in range(d):
            x[i] = held[row * d + i]
        for k in range(K):
            arm: Floats = behind(space, k * width)
            # Both products in one pass, four entries at a time.
            s0 = s1 = s2 = s3 = e0 = e1 = e2 = e3 = 0.0
            i = 0
            while i < size:
                s0 += arm[i] * x[i]
                s1 += arm[i + 1] * x[i + 1]
                s2 += arm[i + 2] * x[i + 2]
                s3 += arm[i + 3] * x[i + 3]
                e0 += arm[size + i] * x[i]
                e1 += arm[size + i + 1] * x[i + 1]
                e2 += arm[size + i + 2] * x[i + 2]
                e3 += arm[size + i + 3] * x[i + 3]
                i += LANES
            score: Real = (s0 + s1) + (s2 + s3) + arm[2 * size]
            scores[k * n + row] = score + arm[2 * size + 4] * lot[row * K + k]
            exponent: Real = (e0 + e1) + (e2 + e3) + arm[2 * size + 1]
            dollars: Real = (
                exp(bounded_exponent(exponent)) * arm[2 * size + 2] + said[row] * arm[2 * size + 3]
            )
            costs[k * n + row] = dollars * own[row]


@cfunc
def lay_out(rewards: Regression, model: CostModel, d: Index, arm: Floats, size: Index) -> None:
    """Write the coefficients of an arm's rewards, and behind them the terms of its expected
    cost."""
    copy_theta(rewards, d, arm, size)
    copy_theta(model.regression, d, behind(arm, size), size)
    paid: Real = 1.0 if model.free else model.paid
    arm[2 * size + 1] = 0.5 * model.variance()
    arm[2 * size + 2] = model.multiple() * model.list_price * paid
    arm[2 * size + 3] = model.input_share * model.input_usd * paid


@cfunc
def copy_theta(one: Regression, d: Index, place: Floats, size: Index) -> None:
    """Copy the coefficients of a regression, filled up to `size`. Raises ValueError where it has
    other dimensions."""
    if one.d != d:
        raise ValueError(f"a regression of {one.d} dimensions is not of {d}")
    for i in range(size):
        place[i] = one.values[one.at + i] if i < d else 0.0
