"""One router's learned state as a file: a name, a version, a length, a SHA-256, then its pieces.
Never pickle.

The pieces are those of the changelog (`state_pieces`), so a program reads a file as far as it reads
the state of a worker. Big-endian: `PBSNAP\\r\\n`, version (2 bytes), length of the rest (8),
SHA-256 of the rest (32); then the length of a head (4), the head as JSON (`about`, and
name and size of each piece), and the pieces.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import orjson
from msgspec import Meta, Struct

from router_state.config import RouterConfig
from router_state.errors import CorruptSnapshot, DamagedState
from router_state.packing.framing import decoded
from router_state.router import RouterState
from router_state.since import Since
from router_state.state import invariants, redeclaring, restoring, state_pieces

MAGIC = b"PBSNAP\r\n"
"""First bytes of a file; a transfer in text mode changes the line end in them."""
VERSION = 1
"""Version of the layout that is written and read."""
_PREFIX = struct.Struct(">8sHQ32s")
"""Magic, layout, number of bytes that follow, and their SHA-256."""
_HEAD = struct.Struct(">I")
"""Number of bytes of the head."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The content of a file: its origin in the writer's words, the state without requests, and the
    file's layout.
    """

    about: dict[str, str]
    state: RouterState
    layout: int = VERSION


class _Head(Struct):
    about: dict[str, str]
    pieces: list[tuple[str, Annotated[int, Meta(ge=0)]]]


def pack(state: RouterState, about: Mapping[str, str]) -> bytes:
    """Return a router as a file; `about` says in words where the file comes from."""
    pieces = state_pieces.pack_pieces(state)
    sizes = [[name, len(piece)] for name, piece in pieces.items()]
    head = orjson.dumps({"about": dict(about), "pieces": sizes})
    rest = b"".join([_HEAD.pack(len(head)), head, *pieces.values()])
    return _PREFIX.pack(MAGIC, VERSION, len(rest), hashlib.sha256(rest).digest()) + rest


def unpack(data: bytes) -> Exported:
    """Invert `pack`.

    Raises:
        CorruptSnapshot: foreign, of another layout, truncated, damaged, or not a state that an
            engine can hold.
    """
    # The beginning is checked first, to tell a truncated snapshot from a foreign file.
    if not data or data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise CorruptSnapshot("this is not a snapshot of a router (a foreign file)")
    if len(data) < _PREFIX.size:
        raise CorruptSnapshot(f"truncated: {len(data)} bytes are not even its beginning")
    _, version, length, digest = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(
            f"format {version} of the file is not {VERSION}, which this program reads: use the "
            "pbstream that wrote it, or a newer one"
        )
    rest = data[_PREFIX.size :]
    if len(rest) < length:
        raise CorruptSnapshot(f"truncated: {len(rest)} of {length} bytes are there")
    if len(rest) > length or hashlib.sha256(rest).digest() != digest:
        raise CorruptSnapshot("damaged: its bytes do not match its checksum")
    try:
        return _exported(rest)
    except DamagedState as error:
        raise CorruptSnapshot(str(error)) from None


def _exported(rest: bytes) -> Exported:
    if len(rest) < _HEAD.size:
        raise CorruptSnapshot("the snapshot has no head")
    at = _HEAD.size + _HEAD.unpack_from(rest)[0]
    head = decoded(rest[_HEAD.size : at], _Head, "head of the file")
    pieces = {}
    for name, size in head.pieces:
        pieces[name] = rest[at : at + size]
        at += size
    if at != len(rest):
        raise CorruptSnapshot("its pieces are not as long as its head says")
    state = restoring.unpack(pieces.get, {})
    for fault in invariants.faults(state):
        raise CorruptSnapshot(f"{fault} can't be")
    return Exported(head.about, state)


def start(data: bytes, config: RouterConfig) -> RouterState:
    """Return the state of a new router that starts from a snapshot: with the snapshot's learned
    state and debts, and with empty books.

    Models that the declaration does not name are left out; `redeclaring.declare` adds new ones.

    Raises:
        CorruptSnapshot: see `unpack`.
    """
    state = unpack(data).state
    for name in [name for name in state.arms.names if name not in config.models]:
        redeclaring.remove(state, name)
    # Learned state belongs to the models and is kept; spend belongs to the other router.
    state.start_over()
    state.since = Since()
    for one in state.capabilities:
        one.start_over()
    for arm in state.arms:
        # Decisions are counted from 1 again, and all of them are after any alarm.
        if arm.suspicion is not None:
            arm.suspicion.after = 0
    state.journal.pieces.update(state_pieces.piece_names(state))
    return state
