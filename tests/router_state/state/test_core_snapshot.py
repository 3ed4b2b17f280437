"""A router that was packed and unpacked goes on as one that never stopped, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.errors import DamagedState, RouterStateError
from router_state.events import Asked, Judged
from router_state.packing.framing import frame
from router_state.state import invariants, state_pieces
from tests.router_state.core_reference import (
    CHEAP,
    DEAR,
    MIDDLE,
    PORTFOLIO,
    Array,
    context,
    declaration,
    freeze,
    thaw,
)

DECLARED = (
    PORTFOLIO,
    {"cheap": CHEAP, "middle": MIDDLE},
    {"cheap": CHEAP, "middle": DEAR, "dear": DEAR},
    {**PORTFOLIO, "new": MIDDLE},
)
KNOBS: dict[str, Any] = {"gamma": 0.9, "onboarding_pulls": 2, "commitment_ttl_seconds": 20.0}
entries = st.integers(-30, 30).map(lambda n: n / 10.0)


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Draw a stream of events; ids are small so that many meet."""
    event = st.one_of(
        st.tuples(st.just("decide"), st.tuples(entries, entries, entries)),
        st.tuples(st.just("decide"), st.tuples(entries, entries, entries)),
        st.tuples(
            st.just("settle"), st.tuples(st.integers(0, 40), st.floats(0, 0.02), st.integers(0, 2))
        ),
        st.tuples(
            st.just("learn"), st.tuples(st.integers(0, 40), st.integers(0, 10), st.integers(0, 2))
        ),
        st.tuples(st.just("expire"), st.integers(0, 60)),
        st.tuples(
            st.just("configure"), st.tuples(st.integers(0, 3), st.sampled_from([None, 3e-4, 2e-3]))
        ),
    )
    return draw(st.lists(event, min_size=1, max_size=50))


def play(
    engine: Played, contexts: dict[str, Array], events: list[tuple[str, Any]], *, start: int
) -> None:
    """Give the events to an engine; refusals are part of life."""
    profile, epsilon = engine.state.config.profile, engine.state.config.knobs.epsilon
    for now, (kind, value) in enumerate(events, start):
        try:
            if kind == "decide":
                request_id = str(engine.state.seq)
                contexts[request_id] = context(*value)
                engine.decide(request_id, contexts[request_id], now=float(now))
            elif kind == "settle":
                engine.settle(str(value[0]), cost_usd=value[1], revision=value[2])
            elif kind == "learn":
                engine.learn(str(value[0]), reward=value[1] / 10, revision=value[2])
            elif kind == "expire":
                engine.expire(now=float(value))
            else:
                prices, budget = DECLARED[value[0]], value[1]
                config = declaration(
                    prices, budget=budget, pulls=None, profile=profile, epsilon=epsilon, **KNOBS
                )
                engine.configure(config, now=float(now))
        except RouterStateError:
            pass


@pytest.mark.parametrize("profile", ["paper", "live"])
@given(before=steps(), after=steps(), epsilon=st.sampled_from([0.0, 0.3]))
def test_stopped_and_never_stopped_are_equal_to_the_bit(
    profile: str, before: list[tuple[str, Any]], after: list[tuple[str, Any]], epsilon: float
) -> None:
    engine = Played.start(declaration(pulls=None, profile=profile, epsilon=epsilon, **KNOBS))
    contexts: dict[str, Array] = {}
    play(engine, contexts, before, start=0)
    other = thaw(freeze(engine), contexts)
    assert freeze(other) == freeze(engine)
    invariants.check(other.state, other.records)
    for one in (engine, other):
        play(one, contexts, after, start=len(before))
    assert freeze(other) == freeze(engine)
    assert [r.model for r in other.records.values()] == [r.model for r in engine.records.values()]


@pytest.mark.parametrize("d", [26, 70])
def test_arrays_of_any_size_come_back_to_the_bit(d: int) -> None:
    rng = np.random.default_rng(d)
    engine = Played.start(declaration(dimensions=d))
    contexts = {str(n): np.append(rng.normal(size=d - 1), 1.0) for n in range(40)}
    for n, (request_id, x) in enumerate(contexts.items()):
        engine.decide(request_id, x, now=float(n))
        engine.learn(request_id, reward=float(rng.random()))
    other = thaw(freeze(engine), contexts)
    assert freeze(other) == freeze(engine)
    for one in (engine, other):
        one.decide("next", contexts["0"], now=50.0)
        one.learn("next", reward=0.25)
    assert freeze(other) == freeze(engine)


def test_packing_changes_nothing() -> None:
    found = []
    for packs in (False, True):
        engine = Played.start(declaration(dimensions=70))
        rng = np.random.default_rng(5)
        for n in range(30):
            engine.decide(str(n), np.append(rng.normal(size=69), 1.0), now=float(n))
            engine.learn(str(n), reward=float(rng.random()))
            if packs:
                freeze(engine)
        found.append(freeze(engine))
    assert found[0] == found[1]


@pytest.mark.parametrize("piece", ["config", "head", "array cheap", "request 0"])
@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: b"\x09" + data[1:], lambda data: data[:-8]]
)
def test_damaged_pieces_are_refused(piece: str, damage: Callable[[bytes], bytes]) -> None:
    engine = Played.start(declaration())
    engine.decide("0", context(1, 2, 3), now=0.0)
    pieces = freeze(engine)
    pieces[piece] = damage(pieces[piece])
    with pytest.raises(DamagedState):
        thaw(pieces, {"0": context(1, 2, 3)})


@pytest.mark.parametrize(
    "piece", ["config", "head", "array cheap", "array \x1fcost:cheap", "request 0"]
)
@given(data=st.data())
def test_a_flipped_bit_is_noticed_wherever_it_is(piece: str, data: st.DataObject) -> None:
    engine = Played.start(declaration())
    engine.decide("0", context(1, 2, 3), now=0.0)
    pieces = freeze(engine)
    damaged = bytearray(pieces[piece])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    pieces[piece] = bytes(damaged)
    with pytest.raises(DamagedState):
        thaw(pieces, {"0": context(1, 2, 3)})


@pytest.mark.parametrize("piece", ["config", "head", "array cheap", "request 0"])
@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b"null", b'{"counters": 3}', b"[[], 1", b"\xff\xfe", b"1234567890123"],
)
def test_pieces_of_another_shape_are_corrupt_even_with_a_true_checksum(
    piece: str, body: bytes
) -> None:
    engine = Played.start(declaration())
    engine.decide("0", context(1, 2, 3), now=0.0)
    with pytest.raises(DamagedState):
        thaw(freeze(engine) | {piece: frame(body)}, {"0": context(1, 2, 3)})


def test_the_pieces_that_changed_are_named_once() -> None:
    engine = Played.start(declaration())
    assert engine.started().pieces == set(state_pieces.piece_names(engine.state))
    decided = engine.apply(Asked("a", context(1, 2, 3)), 0.0)
    learned = engine.apply(Judged("a", 0.5), 1.0)
    assert decided.decision is not None and decided.decision.model in learned.pieces
    assert not engine.apply(Judged("a", 0.5), 1.0)
