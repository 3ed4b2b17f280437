"""A bounded, durable table by name: 256 drawers by the checksum of names, with at most 32 entries
each. A full drawer forgets the entry that has been idle for the longest time.

Each drawer is a piece of its own, so that an event writes little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar
from zlib import crc32

import orjson
from msgspec import to_builtins

from router_state.changes import Journal
from router_state.packing.framing import decoded

DRAWERS, IN_DRAWER = 256, 32
"""Number of drawers, each a piece of its own, and of entries in one: 8,192 entries of a router."""
IDLE_SECONDS = 86_400.0
"""Seconds without use after which an entry is forgotten: no session pauses for longer."""


class Entry(Protocol):
    """One entry, a struct; `at` is the time of its last use, in seconds since the epoch."""

    at: float


Kept = TypeVar("Kept", bound=Entry)


class Drawers(Generic[Kept]):
    """The entries of one kind.

    Args:
        kind: their class.
        piece: prefix of the names of their pieces, which begins with `\\x1f`.
    """

    __slots__ = ("_journal", "_piece", "_rows", "drawers")

    def __init__(self, kind: type[Kept], piece: str, journal: Journal) -> None:
        self._piece, self._journal = piece, journal
        self._rows: Any = list[tuple[str, kind]]  # type: ignore[valid-type]
        self.drawers: dict[int, dict[str, Kept]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.drawers.values()))

    def __iter__(self) -> Iterator[Kept]:
        for drawer in self.drawers.values():
            yield from drawer.values()

    def find(self, name: str) -> Kept | None:
        """Return an entry that is remembered, or None."""
        return self.drawers.get(_drawer_of(name), {}).get(name)

    def use(self, name: str, entry: Kept) -> None:
        """Store an entry, new or known, as used at its time `at`."""
        drawer = self.drawers.setdefault(_drawer_of(name), {})
        drawer.pop(name, None)
        drawer[name] = entry
        # In order of use: the first has been idle for the longest time.
        for idle in [other for other, one in drawer.items() if entry.at - one.at > IDLE_SECONDS]:
            del drawer[idle]
        while len(drawer) > IN_DRAWER:
            del drawer[next(iter(drawer))]
        self.changed(name)

    def changed(self, name: str) -> None:
        """Note that an entry has changed."""
        self._journal.pieces.add(f"{self._piece}{_drawer_of(name)}")

    def clear(self) -> None:
        """Forget all entries."""
        self._journal.pieces.update(self.pieces)
        self.drawers = {}

    @property
    def pieces(self) -> tuple[str, ...]:
        """Return the names of the pieces that hold the entries."""
        # Names are sorted, so that the bytes of an exported router do not depend on the order of
        # its events.
        drawers = sorted(self.drawers.items())
        return tuple(f"{self._piece}{number}" for number, drawer in drawers if drawer)

    def pack(self, piece: str) -> bytes | None:
        """Return the body of a drawer's piece; None if it is empty or the piece is no drawer."""
        number = piece.removeprefix(self._piece)
        drawer = self.drawers.get(int(number)) if number != piece else None
        packed = [[name, to_builtins(one)] for name, one in drawer.items()] if drawer else None
        return None if packed is None else orjson.dumps(packed)

    def restore(self, piece: Callable[[str], bytes]) -> None:
        """Invert `pack` of all drawers; `piece` returns a body by its name, b"" where there is
        none. Raises DamagedState."""
        for number in range(DRAWERS):
            if body := piece(f"{self._piece}{number}"):
                kept: list[tuple[str, Kept]] = decoded(body, self._rows, f"{self._piece}{number}")
                self.drawers[number] = dict(kept)

    def are_sound(self) -> bool:
        """Tell whether every entry stands in its drawer, and no drawer has too many."""
        return all(
            len(drawer) <= IN_DRAWER and all(_drawer_of(name) == number for name in drawer)
            for number, drawer in self.drawers.items()
        )


def _drawer_of(name: str) -> int:
    return crc32(name.encode()) % DRAWERS
