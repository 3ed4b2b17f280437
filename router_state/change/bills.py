"""Learn from one bill, or one call's time, and detect silent changes of price, tokens or speed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from router_state.changes import Alert
from router_state.config import Vector
from router_state.kernel import LIMIT, CostModel

COUNTED: Mapping[str, str] = MappingProxyType({"cost": "bills", "latency": "calls"})
"""Names of the residuals in an alert's evidence, by signal."""


def observe(
    model: CostModel,
    ratio: float,
    x: Vector | None,
    *,
    known: float,
    now: float,
    signal: Literal["cost", "latency"] = "cost",
) -> Alert | None:
    """Let a model learn one bill, see `CostModel.observe`; return an alert if it revealed a
    shift."""
    found = model.observe(ratio, x, known=known, now=now)
    if found is None:
        return None
    shift, factor, size = found
    return Alert(
        kind="drift",
        model=model.regression.piece.partition(":")[2],
        signal=signal,
        direction="up" if factor > 1.0 else "down",
        size=size,
        since=shift.since,
        observed_at=now,
        evidence={
            "factor": factor,
            "cusum": shift.evidence,
            "limit": LIMIT,
            COUNTED[signal]: shift.residuals,
        },
    )
