"""State of formats 4 and 6 goes on: every number that it holds is there again, to the bit."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import orjson
import pytest

from benchmarks.played import Played
from router_state.changes import CONFIG, HEAD
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.errors import CorruptSnapshot
from router_state.kernel import Arm, Chance, Debt, Regression
from router_state.pacing.dollar_dual import DollarDual
from router_state.packing import layout
from router_state.packing.framing import body_of
from router_state.record import RequestRecord
from router_state.router import Chances
from router_state.state import invariants, portable, record_bytes, restoring, state_pieces
from tests.unit.core_reference import PORTFOLIO, context, declaration
from tests.unit.router_states import buckets_of

FIXTURE = Path(__file__).parents[1] / "fixtures" / "format-4.json.xz"
"""Eight routers as release c0040a5 wrote them: their pieces and requests, and their numbers under
the names that they have today."""
WRITTEN: dict[str, Any] = json.loads(lzma.decompress(FIXTURE.read_bytes()))


SIX = Path(__file__).parents[1] / "fixtures" / "format-6.json.xz"
"""Pieces of the same routers as the program before this one wrote them."""
PIECES: dict[str, dict[str, str]] = json.loads(lzma.decompress(SIX.read_bytes()))
ANEW = ("detector.", "costs.detector.", "costs.novelty.", "costs.calibrat", "costs.bills")
"""Numbers that begin anew, or count otherwise."""


def pieces_of(name: str) -> dict[str, bytes]:
    """Return the pieces of a router of the fixture."""
    return {piece: bytes.fromhex(data) for piece, data in WRITTEN[name]["pieces"].items()}


def read(pieces: dict[str, bytes], requests: dict[str, Any]) -> Played:
    """Return an engine that goes on from pieces and requests."""
    records: dict[str, RequestRecord] = {}
    for request_id, kept in requests.items():
        records[request_id] = record_bytes.unpack_record(bytes.fromhex(kept["record"]))
        records[request_id].x = np.array(kept["x"])
    awaited = {
        request_id: record.decided_at
        for request_id, record in records.items()
        if record.bill is None and not record.expired
    }
    return Played(restoring.unpack(lambda name: pieces.get(name, b""), awaited), records)


def restored(name: str) -> Played:
    """Return an engine that goes on from a router of the fixture."""
    return read(pieces_of(name), WRITTEN[name]["requests"])


def altered(piece: bytes, **changed: Any) -> bytes:
    """Return a piece of format 4 with other values; None drops one."""
    body = orjson.loads(piece[5:]) | changed
    data = orjson.dumps({name: value for name, value in body.items() if value is not None})
    return b"\x04" + crc32(data).to_bytes(4, "big") + data


def digest(*arrays: Any) -> str:
    """Return what the fixture has of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return found.hexdigest()[:16]


def play(engine: Played, n: int) -> None:
    """Ask, bill and judge requests."""
    for number in range(n):
        x = np.append(np.random.default_rng(number).normal(size=engine.state.arms.d - 1), 1.0)
        name = f"later-{number}"
        engine.decide(name, x, now=2e9 + number)
        engine.settle(name, cost_usd=1e-4 * (1 + number % 7))
        engine.learn(name, reward=0.5 + 0.4 * float(np.sin(number)))
        invariants.check(engine.state, engine.records)


def arrays(one: Regression) -> list[np.ndarray]:
    """Return V without what is pending, θ, and the pending rows, as format 4 had them in memory."""
    d, triangle = one.d, one.d * (one.d + 1) // 2
    V = np.zeros((d, d))
    V[np.tril_indices(d)] = one.kept[:triangle]
    return [V + np.tril(V, -1).T, one.theta, one.kept[triangle + d :].reshape(-1, d)]


def arrays_of(arm: Arm) -> dict[str, str]:
    """Return digests of what an arm's regressions hold."""
    return {
        f"of {what}": digest(*arrays(one))
        for what, one in (("rewards", arm.rewards), ("bills", arm.costs.regression))
    }


def drawn_from(chance: Chances, before: str) -> str:
    """Return the state of a generator, as format 4 wrote it; of a source that starts from it,
    `before`."""
    if isinstance(chance, Chance):
        assert chance.state == int(before, 16) % 2**64
        return before
    return f"{chance.bit_generator.state['state']['state']:x}"


@pytest.mark.parametrize("name", WRITTEN)
def test_every_number_of_format_4_comes_back_to_the_bit(name: str) -> None:
    numbers, state = WRITTEN[name]["numbers"], restored(name).state
    arms = state.arms
    whole: dict[str, Callable[[], object]] = {
        "rng": lambda: drawn_from(state.chance, numbers["rng"]),
        "names": lambda: list(arms.names),
        "buckets": lambda: [[one.left_usd, one.at, one.exhausted] for one in buckets_of(state)],
        "rewards": lambda: digest(arms.rewards.mean, arms.rewards.center),
        "bills": lambda: digest(arms.bills.mean, arms.bills.center),
        "slots": lambda: digest(arms.tokens.slots),
    }
    if (window := arms.window) is not None:
        whole["window"] = lambda: digest(window.contexts[: window.size])
        whole["limited"] = lambda: {
            str(slot): sorted(models) for slot, models in sorted(window.limited.items())
        }
    assert len(numbers) > 25
    for what, value in numbers.items():
        if what.startswith("arm "):
            arm = arms[what.removeprefix("arm ")]
            kept = {one: known for one, known in value.items() if not one.startswith(ANEW)}
            scalars = {one: attrgetter(one)(arm) for one in kept if not one.startswith("of ")}
            assert scalars | arrays_of(arm) == kept, what
            # First guesses counted among the bills: one in their mean, three in the calibration.
            own, calibration = value["costs.calibrated"] - 3.0, value["costs.calibration"]
            counted = arm.costs.bills + (not arm.costs.free)
            assert counted == max(value["costs.bills"], not arm.costs.free)
            assert own <= 0.0 or arm.costs.calibration * own + 3.0 == pytest.approx(
                calibration * (own + 3.0)
            )
        elif "sample" not in what and what != "pacer.stale":  # which are kept otherwise
            found = (
                whole[what]()
                if what in whole
                else attrgetter(what.replace("pacer.w", "arms.w"))(state)
            )
            assert found == value, what


@pytest.mark.parametrize("name", WRITTEN)
def test_a_router_of_format_4_goes_on_and_is_written_whole(name: str) -> None:
    engine = restored(name)
    invariants.check(engine.state, engine.records)
    assert engine.started().pieces == set(state_pieces.piece_names(engine.state))
    assert portable.unpack(portable.pack(engine.state, {})).state.seq == engine.state.seq
    play(engine, 60)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_router_of_format_4_decides_alike_from_either_format(name: str) -> None:
    left, pieces = restored(name), state_pieces.pack_pieces(restored(name).state)
    right = read(pieces, WRITTEN[name]["requests"])
    for engine in (left, right):
        play(engine, 20)
    assert state_pieces.pack_pieces(left.state) == state_pieces.pack_pieces(right.state)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_router_of_format_6_is_the_one_of_format_4(name: str) -> None:
    pieces = {piece: bytes.fromhex(data) for piece, data in PIECES[name].items()}
    engines = restored(name), read(pieces, WRITTEN[name]["requests"])
    packed = [state_pieces.pack_pieces(engine.state) for engine in engines]
    for one in packed:
        del one[HEAD]
    assert packed[0] == packed[1]
    assert layout.COUNTERS.of(engines[0].state) == layout.COUNTERS.of(engines[1].state)
    play(engines[1], 20)


def test_the_scatter_of_bills_starts_anew() -> None:
    pacer = restored("live").state.pacer
    assert isinstance(pacer, DollarDual)
    assert (pacer.debt.scatter, pacer.debt.settled) == (Debt().scatter, Debt().settled)


def test_tokens_are_counted_anew_where_a_program_that_knows_none_has_decided_since() -> None:
    pieces = pieces_of("tokens")
    assert restored("tokens").state.arms.tokens.in_use
    pieces[TOKENS] = altered(pieces[TOKENS], seq=1)
    assert not read(pieces, WRITTEN["tokens"]["requests"]).state.arms.tokens.in_use


def test_a_model_that_a_program_without_tokens_has_let_join_begins_at_its_list_price() -> None:
    pieces = pieces_of("tokens")
    pieces[TOKENS] = altered(pieces[TOKENS], shares={"cheap": 0.5})
    arms = read(pieces, WRITTEN["tokens"]["requests"]).state.arms
    assert [arm.costs.input_share for arm in arms] == [0.5, 1.0, 1.0]


def test_state_from_before_models_learned_together_is_refused_in_words() -> None:
    pieces = pieces_of("live")
    pieces[HEAD] = altered(pieces[HEAD], costs=None)
    with pytest.raises(CorruptSnapshot, match="before models learned together"):
        read(pieces, WRITTEN["live"]["requests"])


def test_knobs_that_are_gone_or_unused_are_left_out() -> None:
    pieces = pieces_of("live")
    assert {"alpha", "lambda_c"} <= orjson.loads(body_of(pieces[CONFIG]))["knobs"].keys()
    knobs = restored("live").state.config.knobs
    assert (knobs.gamma, knobs.onboarding_pulls) == (0.9995, 0)


@pytest.mark.parametrize("profile", ["paper", "live"])
@pytest.mark.parametrize("models", [{}, PORTFOLIO], ids=["without a model", "with models"])
def test_a_router_that_was_just_started_is_written_whole(
    profile: str, models: dict[str, Any]
) -> None:
    engine = Played.start(declaration(models, profile=profile))
    pieces = {
        name: state_pieces.pack_piece(engine.state, name) or b"" for name in engine.started().pieces
    }
    assert state_pieces.pack_pieces(read(pieces, {}).state) == pieces
    if models:
        assert engine.decide("r", context(0.1, 0.2, 0.3), now=0.0).seq == 1
