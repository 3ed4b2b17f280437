"""Layout 1 of an exported router, as layout 2 calls its pieces; it is only read.

The length of the head (4 bytes, big-endian), the head, then arrays, little-endian, one after the
other: of each arm A_hat⁻¹ (lower triangle), θ, w, pending rows, the cost model's inverse (lower
    triangle); of the window the contexts, in single precision. Values of
an arm stand in a fixed order, without names.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import orjson

from router_state.errors import CorruptSnapshot
from router_state.state.export_config import MAX_DIMENSIONS
from router_state.state.export_fields import Array, Pieces, Values
from router_state.state.framing import Json

LENGTH_BYTES = 4
"""Of the head's length, big-endian."""
ARM = (
    "decay",
    "forgotten",
    "last_update",
    "last_played",
    "pulls_left",
    "pending",
    "ratio",
    "bills",
    "retired_at",
)
"""Order of the scalars of an arm, in this layout for good."""
RUN = ("evidence", "count", "total", "since")
"""Order of the values of a side of the CUSUM, in this layout for good."""


def unpack(data: bytes) -> tuple[dict[str, str], Pieces]:
    """Return what the writer said about it, and the pieces. Raises CorruptSnapshot, LookupError,
    TypeError, ValueError."""
    size = int.from_bytes(data[:LENGTH_BYTES], "big")
    head = orjson.loads(data[LENGTH_BYTES : LENGTH_BYTES + size])
    about = {str(name): str(value) for name, value in head["about"].items()}
    return about, Pieces(_values(head), _arrays(head, data[LENGTH_BYTES + size :]))


def _values(head: Mapping[str, Json]) -> Values:
    config = head["config"]
    names = ("input_price_per_m", "output_price_per_m", "onboarding_pulls")
    models = {name: _named(names, model) for name, model in config["models"].items()}
    return {
        "config": {
            "models": models,
            "budget_usd_per_request": config["budget"],
            "dimensions": config["dimensions"],
            "profile": config["profile"],
            "knobs": config["knobs"],
            "caps": [_named(("usd", "seconds", "hard"), cap) for cap in config["caps"]],
        },
        "counters": head["counters"],
        "pacer": _pacer(head["pacer"]),
        "buckets": [_named(("left_usd", "at", "reached"), bucket) for bucket in head["buckets"]],
        "rng": _named(("state", "inc", "has_uint32", "uinteger"), head["rng"]),
        "arms": [_arm(arm, seq=head["counters"]["seq"]) for arm in head["arms"]],
    }


def _named(names: tuple[str, ...], values: list[Json]) -> Values:
    return dict(zip(names, values, strict=True))


def _pacer(packed: Mapping[str, Json] | None) -> Values | None:
    if packed is None:
        return None
    if "ema" in packed:
        return {"ema": _named(("lambda_t", "cost_ema_usd"), packed["ema"])}
    window = {name: packed[name] for name in ("size", "next", "limited")}
    return {
        "dual": {
            **_named(("lambda_t", "debt_usd", "target_usd", "stale"), packed["dual"]),
            "window": window,
        }
    }


def _arm(packed: Mapping[str, Json], *, seq: int) -> Values:
    suspicion = packed["suspicion"]
    if suspicion is not None:
        # Which decision was the last before the alarm is not in this layout; what starts from it
        # has none from before.
        suspicion = _named(("offset", "count", "evidence", "since", "after"), [*suspicion, seq])
    return {
        "name": packed["name"],
        "price": _named(("input_price_per_m", "output_price_per_m"), packed["price"]),
        **_named(ARM, packed["scalars"]),
        "watch": _watch(packed["watch"]),
        "suspicion": suspicion,
        "costs": {"decay": packed["cost_decay"], "watch": _watch(packed["cost_watch"])},
    }


def _watch(values: list[Json]) -> Values:
    sigma, mean, *runs = map(float, values)
    up, down = ({**_named(RUN, run), "count": int(run[1])} for run in (runs[:4], runs[4:]))
    return {"sigma": sigma, "mean": mean, "up": up, "down": down}


def _arrays(head: Mapping[str, Json], data: bytes) -> dict[str, Array]:
    d = head["config"]["dimensions"]
    if not 2 <= d <= MAX_DIMENSIONS:
        raise CorruptSnapshot(f"{d} dimensions can't be")
    half, file, found = d * (d + 1) // 2, _File(data), {}
    for k, arm in enumerate(head["arms"]):
        found[f"arm/{k}/inverse"] = file.take(half)
        found[f"arm/{k}/theta"] = file.take(d)
        found[f"arm/{k}/costs/w"] = file.take(d)
        found[f"arm/{k}/tails"] = file.take(arm["scalars"][ARM.index("pending")], d)
        found[f"arm/{k}/costs/inverse"] = file.take(half)
    if head["pacer"] is not None and "dual" in head["pacer"]:
        found["window"] = file.take(head["pacer"]["size"], d, kind="<f4")
    file.finish()
    return found


class _File:
    """Take arrays off a file's end, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, *shape: int, kind: str = "<f8") -> Array:
        """Return the next array. Raises CorruptSnapshot: the file is over."""
        end = self._at + int(np.prod(shape)) * np.dtype(kind).itemsize
        # A negative size would move backwards and hand out the same bytes twice.
        if min(shape) < 0 or end > len(self._data):
            raise CorruptSnapshot("its arrays are shorter than its head says")
        found = np.frombuffer(self._data[self._at : end], kind).reshape(shape)
        self._at = end
        return found

    def finish(self) -> None:
        """Raise CorruptSnapshot where something is left."""
        if self._at != len(self._data):
            raise CorruptSnapshot("its arrays are longer than its head says")
