"""Layout 2 of an exported router: a container of named pieces.

The length of the head (4 bytes, big-endian); the head, JSON: `about`, `values`, and of each array
its name, kind and shape; the arrays, little-endian, one after the other. What the pieces are is
said in `export_pieces`: a later one needs no new layout.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod

import numpy as np
import orjson

from router_state.errors import CorruptSnapshot
from router_state.state.export_fields import Array, Pieces

_HEAD = struct.Struct(">I")
"""Bytes of the head."""
KINDS = ("<f8", "<f4")
"""Types of arrays: double, and single for the contexts of the window."""


def pack(pieces: Pieces, about: Mapping[str, str]) -> bytes:
    """Return head and arrays."""
    listed = [[name, array.dtype.str, array.shape] for name, array in pieces.arrays.items()]
    head = orjson.dumps({"about": dict(about), "values": pieces.values, "arrays": listed})
    return b"".join(
        [_HEAD.pack(len(head)), head, *(array.tobytes() for array in pieces.arrays.values())]
    )


def unpack(data: bytes) -> tuple[dict[str, str], Pieces]:
    """Invert `pack`. Raises CorruptSnapshot, LookupError, TypeError, ValueError."""
    at = _HEAD.size + int.from_bytes(data[: _HEAD.size], "big")
    head = orjson.loads(data[_HEAD.size : at])
    about = {str(name): str(value) for name, value in head["about"].items()}
    arrays: dict[str, Array] = {}
    for name, kind, shape in head["arrays"]:
        if kind not in KINDS or not all(type(size) is int and size >= 0 for size in shape):
            raise CorruptSnapshot(f"array {name} of kind {kind} and shape {shape} can't be")
        end = at + prod(shape) * np.dtype(kind).itemsize
        if end > len(data):
            raise CorruptSnapshot("its arrays are shorter than its head says")
        arrays[name] = np.frombuffer(data[at:end], kind).reshape(shape)
        at = end
    if at != len(data):
        raise CorruptSnapshot("its arrays are longer than its head says")
    return about, Pieces(head["values"], arrays)
