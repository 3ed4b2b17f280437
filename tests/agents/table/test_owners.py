"""A partition's pools or families: what is written is what is read, and nothing else is left."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

import hypothesis.strategies as st
from hypothesis import given

from agents.table import keys
from agents.table.owners import Owners
from router_state.errors import DamagedState


@dataclass
class Thing:
    """An owner with named pieces of bytes."""

    pieces: dict[str, bytes] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    @property
    def is_done(self) -> bool:
        return not self.pieces

    def set(self, piece: str, value: bytes | None) -> None:
        self.pieces.pop(piece, None)
        if value is not None:
            self.pieces[piece] = value
        self.changed.add(piece)


class Things(Owners[Thing]):
    kind = keys.POOL

    def _unpack(self, name: str, pieces: Collection[str]) -> Thing:
        read = {piece: self.record(name, piece) for piece in pieces}
        if b"broken" in read.values():
            raise DamagedState("a piece is broken")
        return Thing(read)

    def _pack(self, owner: Thing, piece: str) -> bytes | None:
        return owner.pieces.get(piece)

    def change(self, name: str, piece: str, value: bytes | None) -> None:
        owner = self.get(name) or self._start(name, Thing())
        owner.set(piece, value)
        self.dirty.add(name)


class Records:
    """A table in a dictionary."""

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}
        self.get, self.put = self.records.get, self.records.__setitem__

    def delete(self, key: bytes) -> None:
        self.records.pop(key, None)


def things(table: Records) -> Things:
    return Things(cast(Any, table), keys.by_kind(table.records))


NAMES = st.sampled_from(["one", "two", "ünï"])
VALUES = st.none() | st.sampled_from([b"1", b"2"])


@given(st.lists(st.tuples(NAMES, NAMES, VALUES, st.booleans())))
def test_the_table_has_the_pieces_that_are_there(
    changes: list[tuple[str, str, bytes | None, bool]],
) -> None:
    """Whether the pieces were written by this worker or found by a new one."""
    table = Records()
    owners = things(table)
    expected: dict[tuple[str, str], bytes] = {}
    for name, piece, value, restarts in changes:
        owners.change(name, piece, value)
        expected.pop((name, piece), None)
        if value is not None:
            expected[name, piece] = value
        owners.write()
        if restarts:
            owners = things(table)
        stored = {keys.split(raw)[1:]: value for raw, value in table.records.items()}
        assert stored == expected
        assert set(owners.names) == {name for name, _ in expected}


def test_changes_that_are_forgotten_leave_what_was_written() -> None:
    owners = things(Records())
    owners.change("one", "head", b"1")
    owners.write()
    owners.change("one", "head", b"2")
    owners.change("two", "head", b"1")
    owners.forget("one")
    owners.forget("two")
    owners.write()
    kept = owners.get("one")
    assert kept is not None and kept.pieces == {"head": b"1"}
    assert owners.get("two") is None


def test_one_that_cannot_be_read_is_named_once_and_gives_way_to_a_new_one() -> None:
    table = Records()
    table.put(keys.key(keys.POOL, "one", "head"), b"broken")
    table.put(keys.key(keys.POOL, "one", "member"), b"1")
    table.put(keys.key(keys.POOL, "two", "head"), b"1")
    owners = things(table)
    assert owners.get("one") is None and owners.get("two") is not None
    assert owners.take_unpublished() == {"one": "a piece is broken"}
    assert owners.get("one") is None and not owners.take_unpublished()
    owners.change("one", "head", b"2")
    owners.write()
    assert table.records == {
        keys.key(keys.POOL, "one", "head"): b"2",
        keys.key(keys.POOL, "two", "head"): b"1",
    }
