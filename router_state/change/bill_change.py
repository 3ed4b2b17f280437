"""Raise an alert when bills or call times reveal a silent change of price, tokens or speed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from router_state.changes import Alert
from router_state.kernel import LIMIT, CostModel, Shift

COUNTED: Mapping[str, str] = MappingProxyType({"cost": "bills", "latency": "calls"})
"""Names of the residuals in an alert's evidence, by signal."""


def alert(
    model: CostModel,
    found: tuple[Shift, float, float],
    *,
    now: float,
    signal: Literal["cost", "latency"] = "cost",
) -> Alert:
    """Return the alert for a shift that bills or call times revealed, see `CostModel.observe`."""
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
