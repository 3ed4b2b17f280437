"""The times of a router's calls as pieces of its state, and the checks of what was read."""

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
    """The numbers of a target, in the piece that holds it; `debt` are its dollars, their scatter,
    and how many settlements are behind it."""

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
    told: bool


NUMBERS = _Kept.__struct_fields__[1:]
"""Those that stand under the same name in `Timing`."""


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
    """Take over what `pack` returned. Raises DamagedState."""
    kept = decoded(piece(PIECE), _Kept, "latency")
    timing.debt = Debt(*kept.debt)
    for name in NUMBERS:
        setattr(timing, name, getattr(kept, name))
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
