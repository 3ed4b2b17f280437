"""One bill: what it teaches its model's costs, and whether it gives a silent change of price or of
tokens away."""

from __future__ import annotations

from router_state.changes import Alert
from router_state.config import Vector
from router_state.kernel import LIMIT, CostModel, Shift


def observe(
    model: CostModel, ratio: float, x: Vector | None, *, known: float, now: float
) -> Alert | None:
    """Teach a model one bill, see `CostModel.observe`; return an alert if it gave a shift away."""
    found = model.observe(ratio, x, known=known, now=now)
    return None if found is None else _alert(model, *found, now)


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
            "bills": shift.residuals,
        },
    )
