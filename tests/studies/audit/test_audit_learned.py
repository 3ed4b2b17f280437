"""An audit notices each number of what was learned that is wrong by a millionth."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from agents.table import keys
from router_state.changes import CONFIG, HEAD
from router_state.errors import DamagedState
from router_state.packing import layout
from router_state.packing.framing import body_of, frame
from router_state.router import RouterState
from router_state.state import restoring
from streams.settings import Settings
from studies.audit.learned import differing
from tests.audit_world import World, busy_world, talking_world

SETTINGS = Settings(prefix="pb.", app_id="audited", partitions=3)
Pieces = dict[str, bytes]
# home-0 has the paper's policy, home-1 the live one: they begin alike but for the window.
ARRAYS = ["llama", "mistral", "gemini", "\x1fcost:llama", "\x1frewards", "\x1fbills", "\x1fdraw"]


@pytest.fixture(scope="module")
def world() -> World:
    return asyncio.run(busy_world(SETTINGS, requests=160))


def pieces_of(world: World, router_id: str) -> Pieces:
    """Return a router's pieces as the changelog has them last."""
    kinds = {keys.HEAD: HEAD, keys.CONFIG: CONFIG, keys.ARM: None}
    found: Pieces = {}
    for record in world.records["changelog", world.partition_of(router_id)]:
        kind, owner, part = keys.split(record.key or b"")
        if owner == router_id and kind in kinds and record.value:
            found[kinds[kind] or part] = record.value
    return found


def state_of(pieces: Pieces) -> RouterState:
    return restoring.unpack(pieces.get, {})


def noticed(pieces: Pieces, name: str, at: int, value: float) -> bool:
    """Tell whether a piece with another number differs from the true one, or can't be read."""
    numbers = np.frombuffer(body_of(pieces[name]), "<f8").copy()
    numbers[at] = value
    try:
        damaged = state_of({**pieces, name: frame(numbers.tobytes())})
    except DamagedState:
        return True
    return bool(list(differing(damaged, state_of(pieces))))


def missed(pieces: Pieces, name: str) -> Iterator[int]:
    """Yield the numbers of a piece that may be wrong."""
    for at, value in enumerate(np.frombuffer(body_of(pieces[name]), "<f8").tolist()):
        nearby = value * (1.0 + 1e-6) if value else 1e-6
        # A whole number is read as one: the nearest wrong one is 1 away.
        whole = value.is_integer() and noticed(pieces, name, at, value + 1.0)
        if not (noticed(pieces, name, at, nearby) or whole):
            yield at


@pytest.mark.parametrize("router_id", ["home-0", "home-1"])
def test_what_is_the_same_does_not_differ(world: World, router_id: str) -> None:
    pieces = pieces_of(world, router_id)
    assert not list(differing(state_of(pieces), state_of(pieces)))


@pytest.mark.parametrize("router_id", ["home-0", "home-1"])
@pytest.mark.parametrize("name", ARRAYS)
def test_every_number_of_a_piece_is_compared(world: World, router_id: str, name: str) -> None:
    assert list(missed(pieces_of(world, router_id), name)) == []


def test_the_window_of_the_dual_is_compared(world: World) -> None:
    pieces = pieces_of(world, "home-1")
    numbers = np.frombuffer(body_of(pieces["\x1fwindow0"]), "<f8")
    # Slots that no request has filled yet hold zeros; a millionth of less than 1e-6 is within what
    # rounding may do, and moves no price of a dollar.
    filled = np.flatnonzero(np.abs(numbers) > 1e-6)
    assert len(filled) > 10
    for at in filled.tolist():
        assert noticed(pieces, "\x1fwindow0", at, numbers[at] * (1.0 + 1e-6)), at


@pytest.mark.parametrize("at", range(len(layout.HEAD)))
def test_what_decisions_change_of_an_arm_is_compared(world: World, at: int) -> None:
    true, other = (state_of(pieces_of(world, "home-0")) for _ in range(2))
    numbers = list(layout.HEAD.of(other.arms["llama"]))
    numbers[at] = (numbers[at] or 0) + 1
    layout.HEAD.put(other.arms["llama"], numbers)
    assert list(differing(other, true)) == ["head:arms"]


TALKS = {
    "talk-0": ["\x1flatency:llama", "\x1flatency:"],
    "talk-1": ["\x1fhours", "\x1flatency:gemini"],
}


@pytest.fixture(scope="module")
def talking() -> World:
    return asyncio.run(talking_world(SETTINGS, requests=90))


@pytest.mark.parametrize(
    ("router_id", "name"), [(home, name) for home, names in TALKS.items() for name in names]
)
def test_each_number_of_times_and_traffic_is_compared(
    talking: World, router_id: str, name: str
) -> None:
    assert list(missed(pieces_of(talking, router_id), name)) == []


@pytest.mark.parametrize("kind", ["\x1flatency", "\x1favailability", "\x1fsession"])
def test_words_of_conversations_and_outages_are_compared(talking: World, kind: str) -> None:
    pieces = pieces_of(talking, "talk-0")
    name = next(name for name in pieces if name.startswith(kind) and ":" not in name)
    damaged = body_of(pieces[name]).replace(b"1", b"2")
    assert damaged != body_of(pieces[name])
    state = state_of({**pieces, name: frame(damaged)})
    assert list(differing(state, state_of(pieces)))
