"""The times of a router's calls as pieces of its state, and checks of restored times."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import orjson
from msgspec import Struct

from router_state.kernel import Debt
from router_state.latency.speed import PIECE as SPEED
from router_state.latency.timing import PIECE, Timing
from router_state.packing.framing import decoded


class _Kept(Struct):
    """The numbers of a target as stored in its piece; `debt` holds the debt, its scatter, and the
    number of settlements.
    """

    debt: tuple[float, float, float]
    per_unit: float
    target: float
    expected: float
    tried: int
    count: float
    mean_seconds: float
    over: float
    unheard: int
    short: int
    alerted: bool


NUMBERS = _Kept.__struct_fields__[1:]
"""Numbers with the same names in `Timing`."""


def pack(timing: Timing, piece: str) -> bytes | None:
    """Return the content of a piece: target and debt, or one model's times; None: there is no such
    model.
    """
    if piece == PIECE:
        debt = timing.debt
        numbers = {name: getattr(timing, name) for name in NUMBERS}
        return orjson.dumps({"debt": [debt.usd, debt.scatter, debt.settled], **numbers})
    speed = timing.speeds.get(piece.removeprefix(SPEED))
    return None if speed is None else speed.pack()


def restore(timing: Timing, piece: Callable[[str], bytes]) -> None:
    """Take over what `pack` returned. Raises DamagedState."""
    kept = decoded(piece(PIECE), _Kept, "latency")
    timing.debt = Debt(*kept.debt)
    for name in NUMBERS:
        setattr(timing, name, getattr(kept, name))
    for name, speed in timing.speeds.items():
        speed.restore(piece(f"{SPEED}{name}"))


def faults(timing: Timing) -> Iterable[str]:
    """Yield a description of each part of the times that is impossible."""
    numbers = [timing.debt.usd, *(float(getattr(timing, name)) for name in NUMBERS)]
    least = min(timing.per_unit, timing.count, timing.mean_seconds)
    if not np.isfinite(numbers).all() or least < 0.0:
        yield "target of latency"
    for name, speed in timing.speeds.items():
        if not np.isfinite(speed.costs.regression.kept).all() or not speed.variance > 0.0:
            yield f"times of {name}"
