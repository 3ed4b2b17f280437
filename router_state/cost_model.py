"""What a call of a model will cost: its list price times a ratio that is learned per prompt.

Because ratios are per listed price (per 1k tokens), an announced price needs no relearning. The mean ratio ρ starts too high:
nothing is known of a first burst until its bills arrive.
"""

from __future__ import annotations

import math

import numpy as np

from router_state.config import Price, Vector
from router_state.drift import Shift, Watch
from router_state.work import Work

FIRST_GUESS = 3.0
MEMORY = 2000.0
MEMORY_AFTER_SHIFT = 20.0
RIDGE = 10.0
GAMMA = 0.9995
SPAN = 3.0
OUTLIER = 10.0
KNOWN_AFTER = 5
EXPECTED_COUNTS = 20.0
COST_LIMIT, LEAST_COST_LIMIT = 10.0, 4.0
DEVIATION_BEFORE, DEVIATION_MEMORY = 3.0, 1000.0
MIN_PRICE_PER_1K = 1e-9
LEAST_RESIDUAL = -math.log(OUTLIER)
"""A bill far below what was expected (a call that was cut off) counts as a tenth of it, as `winsorised` cuts one far above."""
RIDGE_FLOOR = 0.1


class CostModel:
    """How the bills of one arm deviate from their mean ratio ρ to the list price, by prompt: recursive least squares.

    Attributes:
        block: shape (d + 1, d): the inverse of the undecayed design matrix in rows 0..d-1, the coefficients w in row d.
        inverse, w: views of it.
        decay: what is left of the ridge.
        watch: looks out for a silent change of price or of tokens, on the logarithm of ratio ÷ prediction.
    """

    __slots__ = ("block", "decay", "inverse", "w", "watch")

    def __init__(self, d: int) -> None:
        """Start the model of an arm without a bill."""
        self.block = np.eye(d + 1, d) / RIDGE
        self.inverse, self.w = self.block[:d], self.block[d]
        self.decay = 1.0
        self.watch = Watch(sigma=0.7)


def first_guess(price: Price) -> float:
    """Return the ratio to start from: what is free is believed to be free."""
    return FIRST_GUESS if price.per_1k > 0.0 else 0.0


def winsorised(ratio: float, predicted: float) -> float:
    """Return a bill's ratio as it may teach: at most `OUTLIER` times what was expected, if anything was."""
    return min(ratio, OUTLIER * predicted) if predicted > 0.0 else ratio


def predict(ratio: float, deviation: float) -> float:
    """Return the expected ratio of cost to list price for a prompt: ρ + wᵀx, within a third of ρ and three times ρ."""
    predicted, least, most = ratio + deviation, ratio / SPAN, ratio * SPAN
    return least if predicted < least else most if predicted > most else predicted


def follow(mean: float, bills: float, ratio: float) -> tuple[float, float]:
    """Return mean ratio and number of bills with one more, the mean being of about the last `MEMORY`."""
    bills = bills + 1.0 if bills < MEMORY else MEMORY
    return mean + (ratio - mean) / bills, bills


def surprise(watch: Watch, ratio: float, predicted: float, *, budgets: float, bills: float, now: float) -> Shift | None:
    """Watch the logarithm of ratio ÷ prediction; return the shift that a bill gives away: a silent change of price or tokens.

    The evidence wanted falls by the logarithm of what is at stake, as in a Bayes test, but one bill alone is never enough. A bill
    of nothing (a cached answer, a call that failed) is no price: it moves the mean only.

    Args:
        budgets: the bill, in requests' budgets.
        bills: how many the arm has had.
    """
    if ratio <= 0.0 or predicted <= 0.0:
        return None
    residual = max(math.log(ratio / predicted), LEAST_RESIDUAL)
    memory = min(DEVIATION_BEFORE + bills, DEVIATION_MEMORY)
    limit = COST_LIMIT if budgets <= 1.0 else max(COST_LIMIT - math.log(budgets), LEAST_COST_LIMIT)
    return watch.observe(residual, limit=limit, now=now, adaptive=True, memory=memory)


def factor_of(shift: Shift) -> float:
    """Return by what a shift has multiplied the costs."""
    return math.exp(min(max(shift.size, -7.0), 7.0))


def deviation(model: CostModel, x: Vector, work: Work) -> float:
    """Return wᵀx, how a bill is expected to deviate from ρ.

    Args:
        x: context, shape (d,).
        work: arrays of this d; `regress` goes on from what this leaves there.
    """
    return model.block.dot(x, work.cost.y).item(-1)


def regress(model: CostModel, x: Vector, error: float, work: Work) -> None:
    """Learn one deviation from ρ by recursive least squares, forgetting 0.9995, ridge 10.

    Args:
        x: context, shape (d,), for which `deviation` was called last.
        error: the deviation, less wᵀx.
    """
    correction = work.cost
    model.decay *= GAMMA
    if model.decay < RIDGE_FLOOR:
        _restore_ridge(model)
        model.block.dot(x, correction.y)
    correction.y[-1] = -error
    correction.take_off(model.block, model.decay + x.dot(correction.u).item())


def _restore_ridge(model: CostModel) -> None:
    """Fold the decay into the inverse and top its ridge up; the coefficients are what the ridge then holds on to."""
    A = np.linalg.inv(model.inverse) * model.decay
    A[np.diag_indices(len(A))] += (1.0 - model.decay) * RIDGE
    inverse = np.linalg.inv(A)
    model.inverse[:] = (inverse + inverse.T) / 2.0
    model.decay = 1.0
