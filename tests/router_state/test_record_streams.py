"""What drawn worlds leave is what they left when the fixture was written, to the bit, and changes
name every piece that an event has changed: a worker writes those alone.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from router_state.events import Event
from router_state.latency.latency_target import Latency
from router_state.router import RouterState
from router_state.state import state_pieces
from tests.router_state.record_streams import BUDGETED, FIXTURE, WORLDS, Played, World, hashes

KEPT = json.loads(FIXTURE.read_text())
TRIED = World(
    24, d=4, declared={"budget_usd_per_request": 0.0003, "usd_per_second": 0.05}, times=True
)
"""The budget leaves out models, which are tried once in a while as seconds cost dollars."""
VERIFIED = World(25, d=4, declared=BUDGETED | {"verifiers": {"tests": {"usd": 1e-5}}})
NARROW = [name for name, one in WORLDS.items() if one.d <= 26]
ALL_OF_FIRST, THEN_EVERY = 25, 5
"""Events of a type and an outcome after which the whole state is compared: packing it takes three
times as long as the event. A piece that was not named stays different until it is named."""


class Kept(Played):
    """A world that keeps the pieces that changes name, and compares them with the whole state;
    `unnamed` has what differs, and after which event.
    """

    def __init__(self, name: str, world: World | None = None) -> None:
        super().__init__(name, world)
        self.kept: dict[str, bytes] = {}
        self.of: RouterState | None = None
        self.seen: Counter[tuple[type[Event], Any]] = Counter()
        self.unnamed: list[tuple[str, set[str]]] = []

    def current(self) -> RouterState:
        engine = self.state.routers.engine(self.router)
        assert engine is not None
        return engine.state

    def apply(self, event: Event) -> Any:
        if self.of is not self.current():  # it was started again
            self.of = self.current()
            self.kept = state_pieces.pack_pieces(self.of)
        changes = super().apply(event)
        names = list(changes.pieces)
        for name, piece in zip(names, state_pieces.pack(self.of, names), strict=True):
            if piece is None:
                self.kept.pop(name, None)
            else:
                self.kept[name] = piece
        kind = (type(event), changes.outcome)
        self.seen[kind] += 1
        if self.seen[kind] <= ALL_OF_FIRST or self.seen[kind] % THEN_EVERY == 0:
            whole = state_pieces.pack_pieces(self.of)
            differ = {name for name in whole | self.kept if whole.get(name) != self.kept.get(name)}
            if differ:
                self.unnamed.append((type(event).__name__, differ))
        return changes


@cache
def kept(name: str) -> tuple[dict[str, str], Kept]:
    """Return the hashes of what a world leaves, and the world as it was played for them."""
    played = Kept(name)
    return hashes(played), played


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_leaves_the_same_to_the_bit(name: str) -> None:
    left = kept(name)[0] if name in NARROW else hashes(Played(name))
    assert left == KEPT.get(name), (
        "if this change is meant, or the world is new: "
        "python -m tests.router_state.record_streams, and say why in the commit"
    )


@pytest.mark.parametrize("name", NARROW)
def test_every_changed_piece_is_named(name: str) -> None:
    assert kept(name)[1].unnamed == []


def test_a_model_that_is_tried_for_its_time_is_named() -> None:
    played, tried = Kept("tried", TRIED), False
    for _ in played.play():
        timed = played.current().having(Latency)
        tried = tried or (timed is not None and timed.timing.tried > 0)
    assert tried and played.unnamed == []


def test_the_tables_of_verifiers_are_named() -> None:
    played = Kept("verified", VERIFIED)
    hashes(played)
    assert played.seen and played.unnamed == []
