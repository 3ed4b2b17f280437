"""What a call of a model will cost: its list price times a ratio that is learned per prompt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from router_state.config import Matrix, Vector
from router_state.drift import Shift, Watch

FIRST_GUESS = 3.0
MEMORY = 2000.0
RIDGE = 10.0
GAMMA = 0.9995
SPAN = 3.0
OUTLIER = 10.0
KNOWN_AFTER = 5
COST_LIMIT = 12.0
MIN_PRICE_PER_1K = 1e-9
TINY = 1e-9
RIDGE_FLOOR = 0.1


@dataclass(slots=True)
class CostModel:
    """The bills of one arm, as ratios of cost to list price per 1k tokens, so that an announced price needs no relearning.

    Attributes:
        ratio: mean ratio ρ. It starts too high: nothing is known of a first burst until its bills arrive.
        bills: how many bills the mean stands for, at most `MEMORY`; the first guess counts for one.
        inverse: of the decayed design matrix of the deviations from ρ, undecayed, shape (d, d).
        decay: what is left of the ridge.
        watch: looks out for a silent change of price or of tokens, on the logarithm of ratio ÷ prediction.
    """

    ratio: float
    bills: float
    inverse: Matrix
    decay: float
    watch: Watch

    @classmethod
    def start(cls, d: int) -> CostModel:
        """Return the model of an arm without a bill."""
        return cls(FIRST_GUESS, 1.0, np.eye(d) / RIDGE, 1.0, Watch(sigma=0.7))

    def predict(self, deviation: float) -> float:
        """Return the expected ratio for a prompt with this deviation wᵀx: ρ + wᵀx, within a third and three times ρ."""
        ratio = self.ratio
        return min(max(ratio + deviation, ratio / SPAN), ratio * SPAN)


def observe_ratio(model: CostModel, w: Vector, x: Vector | None, ratio: float, *, now: float, watching: bool) -> Shift | None:
    """Learn one bill, ratio = cost ÷ list price; return a shift that it gave away, which is then already acted upon.

    The mean over the last bills, and recursive least squares of what deviates from it (forgetting 0.9995, ridge 10). A bill counts
    for at most `OUTLIER` times its prediction here; it is charged in full elsewhere.

    Args:
        w: the arm's cost coefficients, moved in place, shape (d,).
        x: context, shape (d,), or None if only the mean is kept or the context is lost.
        ratio: finite and ≥ 0.
    """
    predicted = model.predict(0.0 if x is None else w.dot(x).item())
    shift = None
    if watching and model.bills > KNOWN_AFTER:
        shift = model.watch.observe(math.log((ratio + TINY) / (predicted + TINY)), limit=COST_LIMIT, now=now)
        if shift is not None:
            predicted *= rescale(model, w, shift)
    ratio = min(ratio, OUTLIER * predicted)
    model.bills = min(model.bills + 1.0, MEMORY)
    model.ratio += (ratio - model.ratio) / model.bills
    if x is not None:
        _regress(model, w, x, ratio - model.ratio)
    return shift


def rescale(model: CostModel, w: Vector, shift: Shift) -> float:
    """Multiply every expectation by what the run of residuals says; the mean may then move fast."""
    factor = math.exp(min(max(shift.size, -7.0), 7.0))
    model.ratio *= factor
    model.bills = min(model.bills, 20.0)
    w *= factor
    return factor


def _regress(model: CostModel, w: Vector, x: Vector, deviation: float) -> None:
    model.decay *= GAMMA
    inverse = model.inverse
    if model.decay < RIDGE_FLOOR:
        _restore_ridge(model)
    u = inverse.dot(x)
    scale = model.decay + x.dot(u).item()
    w += u * ((deviation - w.dot(x).item()) / scale)
    column = (u * (1.0 / math.sqrt(scale)))[:, None]
    inverse -= column.dot(column.T)


def _restore_ridge(model: CostModel) -> None:
    """Fold the decay into the inverse and top its ridge up; the coefficients are what the ridge then holds on to."""
    A = np.linalg.inv(model.inverse) * model.decay
    A[np.diag_indices(len(A))] += (1.0 - model.decay) * RIDGE
    inverse = np.linalg.inv(A)
    model.inverse[:] = (inverse + inverse.T) / 2.0
    model.decay = 1.0
