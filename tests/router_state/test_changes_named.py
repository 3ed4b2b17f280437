"""Changes name every piece that an event has changed: a worker writes those alone."""

from __future__ import annotations

from typing import Any

import pytest

from router_state.events import Event
from router_state.latency.latency_target import Latency
from router_state.router import RouterState
from router_state.state import state_pieces
from tests.router_state.record_streams import BUDGETED, WORLDS, Played, World

TRIED = World(
    24, d=4, declared={"budget_usd_per_request": 0.0003, "usd_per_second": 0.05}, times=True
)
"""The budget leaves out models, which are tried once in a while as seconds cost dollars."""
VERIFIED = World(25, d=4, declared=BUDGETED | {"verifiers": {"tests": {"usd": 1e-5}}})
NARROW = {name: one for name, one in WORLDS.items() if one.d <= 26}


class Kept(Played):
    """A world that keeps the pieces that changes name, and compares them with the whole state."""

    def __init__(self, world: World) -> None:
        super().__init__("kept", world)
        self.kept: dict[str, bytes] = {}
        self.of: RouterState | None = None

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
        whole = state_pieces.pack_pieces(self.of)
        differ = {name for name in whole | self.kept if whole.get(name) != self.kept.get(name)}
        assert not differ, f"{type(event).__name__} has changed {differ}, and did not say so"
        return changes


@pytest.mark.parametrize("name", NARROW)
def test_every_changed_piece_is_named(name: str) -> None:
    for _ in Kept(NARROW[name]).play():
        pass


def test_a_model_that_is_tried_for_its_time_is_named() -> None:
    played, tried = Kept(TRIED), False
    for _ in played.play():
        timed = played.current().having(Latency)
        tried = tried or (timed is not None and timed.timing.tried > 0)
    assert tried


def test_the_tables_of_verifiers_are_named() -> None:
    for _ in Kept(VERIFIED).play():
        pass
