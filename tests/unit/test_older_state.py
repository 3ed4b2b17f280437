"""State that an older program wrote, or went on from, is read; a router just started is whole."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from router_state.engine import Engine
from router_state.journal import CONFIG, HEAD
from router_state.record import RequestRecord
from router_state.state import config_bytes, invariants, snapshot
from router_state.state.config_bytes import NEW_KNOBS
from router_state.state.framing import frame, loads
from tests.unit.core_reference import PORTFOLIO, context, declaration


def read(pieces: dict[str, bytes], records: dict[str, RequestRecord] | None = None) -> Engine:
    """Return an engine that goes on from pieces; all requests have their bills."""
    return Engine(snapshot.unpack(lambda name: pieces.get(name, b""), {}), dict(records or {}))


def written_by_older(pieces: dict[str, bytes]) -> dict[str, bytes]:
    """Return the pieces as a program leaves them that knows nothing of shared learning."""
    head = loads(pieces[HEAD])
    del head["costs"]
    return {**pieces, HEAD: frame(json.dumps(head).encode())}


def play(engine: Engine, n: int, *, first: int = 0) -> None:
    """Ask, bill and judge requests."""
    for number in range(first, first + n):
        x = context(np.sin(number), np.cos(number), 0.3)
        name = f"r-{number}"
        engine.decide(name, x, now=float(number))
        engine.settle(name, cost_usd=1e-4 * (1 + number % 7), x=x)
        engine.learn(name, reward=0.5 + 0.4 * float(np.sin(number)), x=x)


@pytest.mark.parametrize("profile", ["paper", "live"])
@pytest.mark.parametrize("models", [{}, PORTFOLIO], ids=["without a model", "with models"])
def test_a_router_that_was_just_started_is_written_whole(
    profile: str, models: dict[str, Any]
) -> None:
    engine = Engine.start(declaration(models, profile=profile))
    pieces = {
        name: snapshot.pack_piece(engine.state, name) or b"" for name in engine.started().pieces
    }
    again = read(pieces)
    assert snapshot.pack_pieces(again.state) == pieces


@pytest.mark.parametrize("asked", [0, 3, 200])
def test_routers_that_an_older_program_went_on_from_come_back(asked: int) -> None:
    engine = Engine.start(declaration(PORTFOLIO, profile="live"))
    play(engine, asked)
    pieces = snapshot.pack_pieces(engine.state)
    back = read(written_by_older(pieces), engine.records)
    invariants.check(back.state, back.records)
    for found, held in zip(back.state.arms, engine.state.arms, strict=True):
        if held.costs.bills > 1.0:  # else there is nothing but a guess
            assert found.costs.mean_usd == pytest.approx(held.costs.mean_usd)
    play(back, 100, first=asked)
    invariants.check(back.state, back.records)


def test_all_pieces_are_written_after_older_state_was_read() -> None:
    engine = Engine.start(declaration(PORTFOLIO, profile="live"))
    play(engine, 20)
    back = read(written_by_older(snapshot.pack_pieces(engine.state)))
    assert back.started().pieces == set(snapshot.piece_names(back.state))


@pytest.mark.parametrize("profile", ["paper", "live"])
def test_an_older_program_is_not_told_of_new_knobs_that_are_as_the_profile_has_them(
    profile: str,
) -> None:
    usual = Engine.start(declaration(PORTFOLIO, profile=profile)).state
    assert not NEW_KNOBS & set(loads(snapshot.pack_piece(usual, CONFIG) or b"")["knobs"])
    other = {"shared_learning": not usual.config.knobs.shared_learning}
    chosen = Engine.start(declaration(PORTFOLIO, profile=profile, **other)).state
    config = config_bytes.unpack_config(snapshot.pack_piece(chosen, CONFIG) or b"")
    assert config.knobs == chosen.config.knobs
