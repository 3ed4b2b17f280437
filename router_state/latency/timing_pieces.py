"""The times of a router's calls as pieces of its state, and the checks of what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import orjson

from router_state.kernel import Debt
from router_state.latency.speed import PIECE as SPEED
from router_state.latency.timing import PIECE, Timing

NUMBERS = (
    *("per_unit", "target", "expected", "tried", "count", "mean_seconds", "over", "unheard"),
    *("short", "told"),
)
"""Numbers of a target, in the piece that holds it."""


def pack(timing: Timing, piece: str) -> bytes | None:
    """Return target and debt, or one model's times, by the name of their piece; None: there is no
    such model."""
    if piece == PIECE:
        debt = timing.debt
        numbers = {name: getattr(timing, name) for name in NUMBERS}
        return orjson.dumps({"debt": [debt.usd, debt.scatter, debt.settled], **numbers})
    speed = timing.speeds.get(piece.removeprefix(SPEED))
    return None if speed is None else speed.pack()


def restore(timing: Timing, piece: Callable[[str], bytes]) -> None:
    """Take over what `pack` returned. Raises CorruptSnapshot, LookupError, TypeError."""
    values = orjson.loads(piece(PIECE))
    timing.debt = Debt(*values["debt"])
    for name in NUMBERS:
        setattr(timing, name, values[name])
    for name, speed in timing.speeds.items():
        speed.restore(piece(f"{SPEED}{name}"))


def faults(timing: Timing) -> Iterable[str]:
    """Yield the faults of times that can't be true."""
    numbers = [timing.debt.usd, *(float(getattr(timing, name)) for name in NUMBERS)]
    least = min(timing.per_unit, timing.count, timing.mean_seconds)
    if not np.isfinite(numbers).all() or least < 0.0:
        yield "target of latency"
    for name, speed in timing.speeds.items():
        if not np.isfinite(speed.costs.regression.kept).all() or not speed.variance > 0.0:
            yield f"times of {name}"
