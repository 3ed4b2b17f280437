"""One router's learned state as a file: a name, a version, a length, a SHA-256, then what that
version holds. Never pickle.

A file outlives the program that wrote it: layout 2, which is written, names all that it holds;
layout 1 is still read. The pieces of the changelog are another matter. Big-endian: `PBSNAP\\r\\n`,
version (2 bytes), length of the rest (8), SHA-256 of the rest (32), the rest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from router_state import export_v1
from router_state.config import RouterConfig
from router_state.errors import CorruptSnapshot
from router_state.state import container as export_v2
from router_state.state import export_pieces, snapshot
from router_state.state.export_checks import check
from router_state.state.framing import reading
from router_state.state.router import RouterState

MAGIC = b"PBSNAP\r\n"
"""First bytes of a file; the line end shows a transfer in text mode."""
VERSION = 2
"""Layout that is written."""
_LAYOUTS = {1: export_v1.unpack, 2: export_v2.unpack}
"""Layouts that are read."""
_PREFIX = struct.Struct(">8sHQ32s")
"""Magic, layout, bytes that follow, their SHA-256."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What a file holds: where it comes from, as its writer put it, the state without its requests,
    and the file's layout."""

    about: dict[str, str]
    state: RouterState
    layout: int = VERSION


def pack(state: RouterState, about: Mapping[str, str]) -> bytes:
    """Return a router as a file; `about` says in words where it comes from."""
    rest = export_v2.pack(export_pieces.gathered(state), about)
    return _PREFIX.pack(MAGIC, VERSION, len(rest), hashlib.sha256(rest).digest()) + rest


def unpack(data: bytes) -> Exported:
    """Invert `pack`. Raises CorruptSnapshot: foreign, newer, truncated, damaged, or not a state
    that an engine can hold."""
    # The beginning decides first: a truncated snapshot is told from a foreign file.
    if not data or data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise CorruptSnapshot("this is no snapshot of a router (a foreign file)")
    if len(data) < _PREFIX.size:
        raise CorruptSnapshot(f"truncated: {len(data)} bytes are not even its beginning")
    _, version, length, digest = _PREFIX.unpack_from(data)
    if version > VERSION:
        raise CorruptSnapshot(
            f"format {version} is newer than this program, which reads up to {VERSION}: use a "
            "newer pbstream"
        )
    rest = data[_PREFIX.size :]
    if len(rest) < length:
        raise CorruptSnapshot(f"truncated: {len(rest)} of {length} bytes are there")
    if version not in _LAYOUTS or len(rest) > length or hashlib.sha256(rest).digest() != digest:
        raise CorruptSnapshot("damaged: its bytes do not match its checksum")
    with reading("snapshot"):
        about, pieces = _LAYOUTS[version](rest)
        state = export_pieces.restored(pieces)
        check(state)
        return Exported(about, state, version)


def start(data: bytes, config: RouterConfig) -> RouterState:
    """Return the state of a new router that goes on from a snapshot: what was learned and is owed,
    with books that are empty.

    Models that the declaration does not name are left out; `portfolio.declare` does the rest.

    Raises:
        CorruptSnapshot: see `unpack`.
    """
    state = unpack(data).state
    for name in [name for name in state.arms.names if name not in config.models]:
        state.arms.remove(name)
    # What was learned is of the models, what was spent of the other router: only the first goes on.
    state.start_over()
    state.arms.count_anew()
    state.journal.pieces.update(snapshot.piece_names(state))
    return state
