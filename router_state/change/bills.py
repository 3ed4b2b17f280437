"""One bill: what it teaches its model's costs, and whether it gives a silent change of price or of
tokens away."""

from __future__ import annotations

import math

from router_state.alert import Alert
from router_state.change.detector import LIMIT, Shift
from router_state.config import Vector
from router_state.costs.cost_model import LEAST_PART, SHARE_ABOVE, SHARE_STEP, CostModel
from router_state.costs.ratio import bounded, log_total, rest_moves


def observe(
    model: CostModel, ratio: float, x: Vector | None, *, known: float, now: float
) -> Alert | None:
    """Teach a model one bill; return an alert if the bill gave a shift away.

    Args:
        ratio: bill ÷ list price at the decision.
        x: context, shape (d,); without one only the mean learns.
        known: list price of the input tokens, in the same unit; 0 where they are not counted
            apart.
    """
    if x is None or model.free:
        model.follow(ratio, model.ratio)
        return None
    exponent, spread = model.regression.look(x)
    alert, known = None, known * model.input_share
    # A bill of nothing (a cached answer, a failed call) is no price: it moves the means only.
    if ratio > 0.0:
        # The expectation moves by a shift: only what is left of the residual is learned.
        moved, alert = _watch(model, ratio, exponent, spread, known, now=now)
        exponent += moved
        if known:
            model.move_share(SHARE_STEP if ratio >= known else SHARE_STEP**-SHARE_ABOVE)
        model.learn(math.log(max(ratio - known, LEAST_PART * ratio)), spread, exponent)
    model.calibrate(ratio, exponent, known)
    return alert


def _watch(
    model: CostModel, ratio: float, exponent: float, spread: float, known: float, *, now: float
) -> tuple[float, Alert | None]:
    """Look for a shift of all that a call costs, and let expectations follow it; return by how much
    this prompt's logarithm moved, and the alert if it is the model that changed."""
    regression = model.regression
    own = 1.0 - known / (known + model.predict(exponent)) if known else 1.0
    residual = math.log(ratio) - log_total(exponent, known)
    shift = model.detector.observe(
        residual / math.sqrt(1.0 + spread / regression.decay * own * own),
        deviation=model.prior.deviation * own,
        leverage=spread / regression.bias_variance,
        now=now,
    )
    if shift is None:
        return 0.0, None
    rest = rest_moves(bounded(shift.size), exponent, known)
    regression.journal.jumped = True
    if shift.novel:
        # Prompts of a new kind cost something else: only expectations of prompts like these follow.
        # Along Vx the prompts before, to which this one is new, move least.
        regression.move_along(rest / spread)
        return rest, None
    factor = math.exp(bounded(shift.size))
    if known:
        model.move_share(factor)
    # In list prices, of the mean as it was: by so much a call has become dearer or cheaper.
    size = model.ratio * abs(factor - 1.0)
    model.rescale(factor, rest)
    return rest, _alert(model, shift, factor, size, now)


def _alert(model: CostModel, shift: Shift, factor: float, size: float, now: float) -> Alert:
    return Alert(
        kind="drift",
        model=model.regression.piece.removeprefix("\x1fcost:"),
        signal="cost",
        direction="up" if factor > 1.0 else "down",
        size=size,
        since=shift.since,
        observed_at=now,
        evidence={
            "factor": factor,
            "cusum": shift.evidence,
            "limit": LIMIT,
            "bills": shift.count,
        },
    )
