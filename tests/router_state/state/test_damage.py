"""A record that is not as it was written is DamagedState, or is read as what it was: never another
exception, which would be a defect and end the worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.declaring.in_force import InForce
from agents.table import keys
from agents.table.parking import Parked
from agents.table.recovered import unpack_offsets
from router_state.changes import CONFIG, HEAD
from router_state.errors import DamagedState
from router_state.packing.framing import body_of, frame
from router_state.periods.reporting import Reported
from router_state.periods.spending import PeriodBudget
from router_state.pools import pieces as pool_pieces
from router_state.pools.pool import Pool
from router_state.pools.pool_config import PoolConfig, Share
from router_state.state import record_bytes, restoring, state_pieces
from tests.router_state import record_streams

NAMES = ("narrow", "paper-narrow", "paper-all", "pool", "runs", "sessions", "tail", "all")
"""Worlds that together have every piece of a state."""
Records = dict[str, bytes]


@cache
def played(name: str) -> tuple[Records, Records]:
    """Return the pieces and the requests that a world leaves, by their names."""
    world = replace(record_streams.WORLDS[name], requests=90, d=4)
    one = record_streams.Played(name, world)
    for _ in one.play():
        pass
    pieces: Records = {}
    requests: Records = {}
    for key, value in one.table.records.items():
        kind, _, part = keys.split(key)
        if kind == keys.REQUEST:
            requests[part] = value
        elif kind in (keys.HEAD, keys.CONFIG, keys.ARM):
            pieces[{keys.HEAD: HEAD, keys.CONFIG: CONFIG}.get(kind, part)] = value
    # Without what is left in the table of the router that was there before.
    return read(pieces), requests


def read(pieces: Records) -> Records:
    """Return a router's pieces as they are packed once they were read."""
    return state_pieces.pack_pieces(restoring.unpack(pieces.get, {}))


def unpacked(pieces: Records) -> None:
    """Read a router's pieces, or find them damaged."""
    try:
        restoring.unpack(pieces.get, {})
    except DamagedState as error:
        assert str(error)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw bytes with some flipped, cut out, swapped, said twice, or others put in."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        a, b = sorted(draw(st.tuples(*[st.integers(0, len(found))] * 2)))
        match draw(st.sampled_from(["flip", "cut", "end", "swap", "twice", "put", "digit"])):
            case "flip" if a < len(found):
                found[a] ^= draw(st.integers(1, 255))
            case "cut":
                del found[a : min(b, a + 9)]
            case "end":
                del found[a:]
            case "swap" if b < len(found):
                found[a], found[b] = found[b], found[a]
            case "twice":
                found[a:a] = found[a : min(b, a + 40)]
            case "put":
                some = [b"null", b"-1", b"0.5", b"1e99", b"[]", b"{}", b'""', b"true", b"9" * 30]
                found[a:a] = draw(st.sampled_from([*some, b"\x00" * 8, b"\xff" * 8]))
            # A JSON text stays one.
            case "digit" if any(48 <= one <= 57 for one in found):
                at = draw(st.sampled_from([i for i, one in enumerate(found) if 48 <= one <= 57]))
                found[at] = 48 + draw(st.integers(0, 9))
    return bytes(found)


@given(data=st.data())
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_piece_is_refused_or_read_as_what_it_was(name: str, data: st.DataObject) -> None:
    pieces, _ = played(name)
    piece = data.draw(st.sampled_from(sorted(pieces)))
    try:
        found = read(pieces | {piece: data.draw(damaged(pieces[piece]))})
    except DamagedState as error:
        assert str(error)
    else:
        assert found == pieces


@given(data=st.data())
@pytest.mark.parametrize("name", NAMES)
def test_a_piece_of_another_content_is_refused_or_read_whatever_it_says(
    name: str, data: st.DataObject
) -> None:
    # With a true checksum: as a program would write it that has another idea of the format.
    pieces, _ = played(name)
    piece = data.draw(st.sampled_from(sorted(pieces)))
    body = data.draw(damaged(body_of(pieces[piece])))
    unpacked(pieces | {piece: frame(body)})


@given(data=st.data())
@pytest.mark.parametrize("name", NAMES)
def test_a_router_with_a_piece_of_another_one_is_refused_or_read(
    name: str, data: st.DataObject
) -> None:
    pieces, (others, _) = played(name)[0], played(data.draw(st.sampled_from(NAMES)))
    piece = data.draw(st.sampled_from(sorted(others)))
    unpacked(pieces | {piece: others[piece]})


TEAM = PoolConfig((PeriodBudget(9.0, "day"),), "top", {"home": Share(0.1, 0.9)}, 600.0, 3)
REPORT = Reported("team", "router:home", 1, 0, 1)
PARKED = Parked("pb.costs", 0, 7, b"k", b"v", "r", "q", 1.0, "orphan_cost", "why")


def pool() -> Records:
    """Return the pieces of a pool that has granted something to a member."""
    found = Pool("team")
    found.declare(TEAM)
    found.take_report(REPORT, now=1.0)
    found.grant_all(now=1.0)
    return pool_pieces.pack(found)


def read_pool(data: bytes, name: str) -> Any:
    return pool_pieces.pack(pool_pieces.unpack("team", pool() | {name: data}))[name]


OTHERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "parked": (PARKED.pack(), lambda data: Parked.unpack(data).pack()),
    "declaration": (
        InForce.of(b'{"a": 1}', offset=7).pack(),
        lambda data: InForce.unpack(data).pack(),
    ),
    "watermarks": (frame(b'{"pb.costs":7}'), unpack_offsets),
    **{
        f"pool {name}": (data, lambda data, name=name: read_pool(data, name))
        for name, data in pool().items()
    },
}


@given(data=st.data())
@pytest.mark.parametrize("what", OTHERS)
def test_other_damaged_records_are_refused_or_read_as_what_they_were(
    what: str, data: st.DataObject
) -> None:
    true, unpack = OTHERS[what]
    try:
        found = unpack(data.draw(damaged(true)))
    except DamagedState as error:
        assert str(error)
    else:
        assert found == unpack(true)


@given(data=st.data())
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_request_is_refused_or_read_as_what_it_was(
    name: str, data: st.DataObject
) -> None:
    _, requests = played(name)
    true = requests[data.draw(st.sampled_from(sorted(requests)))]
    spoilt = data.draw(damaged(true))
    for unpack in (
        lambda data: record_bytes.pack_record(record_bytes.unpack_record(data)),
        lambda data: record_bytes.outline("r", data),
    ):
        try:
            found = unpack(spoilt)
        except DamagedState as error:
            assert str(error)
        else:
            assert found == unpack(true)
    for read_record in (record_bytes.unpack_record, lambda data: record_bytes.outline("r", data)):
        try:
            read_record(frame(data.draw(damaged(body_of(true)))))
        except DamagedState as error:
            assert str(error)
