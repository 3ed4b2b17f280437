"""A router in a file goes on as the exported one; a truncated or damaged file is refused."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state import export_arms, export_config, invariants, portable, snapshot
from router_state import export_pieces as pieces
from router_state.arm import Arm
from router_state.belief import Belief
from router_state.books import Books
from router_state.caps import Bucket
from router_state.config import Cap, Knobs, ModelConfig, Price, ProjectionRef, RouterConfig
from router_state.cost_model import CostModel
from router_state.drift import Side, Suspicion, Watch
from router_state.dual_pacer import DualPacer
from router_state.engine import Engine
from router_state.errors import CorruptSnapshot, InvalidConfig
from router_state.familiar import Familiar
from router_state.pacing import EmaPacer
from router_state.prompt_tokens import PromptTokens
from router_state.state import RouterState
from router_state.window import Window
from streams.state.exporting import declaration_from
from streams.state.snapshots import difference, summary
from tests.unit.core_reference import CHEAP, DEAR, declaration, freeze
from tests.unit.router_states import FOLDER, STATES

FIXTURES = Path(__file__).parents[1] / "fixtures"
LAYOUT_1 = (FIXTURES / "router-live-v1.pbs").read_bytes()
LIVE = (FOLDER / "capped.pbs").read_bytes()
PREFIX = struct.Struct(">8sHQ32s")
CAPS = (Cap(5.0, 3600.0), Cap(60.0, 86_400.0, hard=True))


def configuration(profile: str, d: int = 4, **changed: Any) -> RouterConfig:
    """Return a router with caps and exploration at random."""
    return replace(
        declaration(
            **dict[str, Any](dimensions=d, profile=profile, pulls=2, epsilon=0.1, budget=2e-3)
            | changed
        ),
        caps=CAPS,
    )


def play(engines: list[Engine], first: int, count: int, *, seed: int = 1) -> None:
    """Give the same requests, bills and rewards to all engines, which must decide alike."""
    rng = np.random.default_rng([seed, first])
    d = engines[0].state.arms.d
    for number in range(first, first + count):
        x, tokens, luck = (
            np.append(rng.normal(size=d - 1), 1.0),
            float(rng.lognormal(0, 0.5)),
            0.1 * float(rng.random()),
        )
        allowed = ["cheap", "dear"] if number % 9 == 4 else None
        made = [
            engine.decide(f"r-{number}", x, now=1e9 + number, allowed_models=allowed)
            for engine in engines
        ]
        told = [
            (r.model, r.reason, r.propensity, r.candidates, r.lambda_t, r.expected_cost_usd)
            for r in made
        ]
        assert told.count(told[0]) == len(told)
        quality = {"cheap": 0.4, "middle": 0.6 if number < 120 else 0.1, "dear": 0.9}[made[0].model]
        for engine in engines:
            engine.settle(f"r-{number}", cost_usd=tokens * made[0].price.per_1k)
            engine.learn(f"r-{number}", reward=quality + luck)


def exported(profile: str, d: int = 4, count: int = 200) -> tuple[Engine, bytes]:
    """Return an engine after some traffic, and its file."""
    engine = Engine.start(configuration(profile, d))
    play([engine], 0, count)
    return engine, portable.pack(
        engine.state,
        {"router_id": "home", "service": "test", "exported_at": "2026-11-21T12:00:00Z"},
    )


def sealed(rest: bytes, *, magic: bytes = portable.MAGIC, version: int = portable.VERSION) -> bytes:
    """Put a true frame around what may be nonsense."""
    return PREFIX.pack(magic, version, len(rest), hashlib.sha256(rest).digest()) + rest


def altered(data: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Change the head of a file and give it a true checksum again."""
    rest = data[PREFIX.size :]
    end = 4 + int.from_bytes(rest[:4], "big")
    head = json.loads(rest[4:end])
    change(head)
    packed = json.dumps(head).encode()
    return sealed(
        len(packed).to_bytes(4, "big") + packed + rest[end:], version=PREFIX.unpack_from(data)[1]
    )


@pytest.mark.parametrize("d", [4, 70])
@pytest.mark.parametrize("profile", ["paper", "live"])
def test_a_router_goes_on_from_a_file_as_the_one_that_was_exported(profile: str, d: int) -> None:
    engine, data = exported(profile, d)
    other = Engine.start(replace(configuration(profile, d), snapshot=data, offset=7))
    assert (other.state.seq, other.state.spend_usd, other.state.settled, dict(other.records)) == (
        0,
        0.0,
        0,
        {},
    )
    assert other.state.config == replace(configuration(profile, d), offset=7)
    play([engine, other], 200, 200)
    invariants.check(other.state, other.records)
    left, right = freeze(engine), freeze(other)
    # An import counts decisions anew, also those that a suspicion knows.
    suspected = {f"array {arm.name}" for arm in engine.state.arms if arm.suspicion is not None}
    assert {
        name for name in left if name.startswith("array") and left[name] != right[name]
    } <= suspected
    assert (engine.state.lambda_t, engine.state.t) == (other.state.lambda_t, other.state.t)
    assert engine.state.buckets == other.state.buckets


def test_every_piece_of_a_started_router_is_written() -> None:
    _, data = exported("live")
    state = Engine.start(replace(configuration("live"), snapshot=data)).state
    assert state.journal.take_pieces() == set(snapshot.piece_names(state))
    assert sum(name.startswith("\x1fwindow") for name in snapshot.piece_names(state)) == 16


def test_the_declaration_decides_who_is_in_the_portfolio_and_at_which_price() -> None:
    engine, data = exported("live")
    declared = configuration("live", budget=4e-3)
    models = {"dear": ModelConfig(CHEAP), "new": ModelConfig(DEAR)}
    state = Engine.start(replace(declared, models=models, snapshot=data)).state
    assert state.arms.names == ("dear", "new")
    assert [arm.price for arm in state.arms] == [CHEAP, DEAR]
    known = engine.state.arms["dear"].belief.theta
    # What it shares moves as another joins.
    assert state.arms[0].belief.theta == pytest.approx(known, abs=0.05)
    with pytest.raises(InvalidConfig):
        Engine.start(replace(configuration("live", 5), snapshot=data))


@pytest.mark.parametrize("name", STATES)
def test_a_router_in_any_state_is_the_same_after_writing_and_reading(name: str) -> None:
    engine = STATES[name]()
    data = portable.pack(engine.state, {})
    found = portable.unpack(data)
    assert portable.pack(found.state, found.about) == data
    other = Engine.start(replace(engine.state.config, snapshot=data))
    left, right = freeze(engine), freeze(other)
    # An import counts decisions anew, and leaves out who is not declared.
    whole = name not in ("suspect", "retired")
    assert (
        not whole
        or [piece for piece in left if piece.startswith("array") and left[piece] != right[piece]]
        == []
    )
    if engine.state.arms.names and name != "retired":
        play_both(engine, other)


def play_both(engine: Engine, other: Engine) -> None:
    """Let a router and the one that started from its file decide, and learn, alike."""
    for number in range(30):
        x = np.append(np.random.default_rng(number).normal(size=engine.state.arms.d - 1), 1.0)
        made = [one.decide(f"later-{number}", x, now=2e9 + number) for one in (engine, other)]
        assert made[0].model == made[1].model
        assert made[0].candidates == made[1].candidates
        for one in (engine, other):
            one.learn(f"later-{number}", reward=0.3)
            one.settle(f"later-{number}", cost_usd=2e-4)


def leaves(tree: Any, path: str = "") -> dict[str, Any]:
    """Return the values of nested objects by their paths."""
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        key: value
        for name, branch in tree.items()
        for key, value in leaves(branch, f"{path}/{name}").items()
    }


@pytest.mark.parametrize("name", STATES)
def test_a_file_of_a_router_in_any_state_stays_readable(name: str) -> None:
    data = (FOLDER / f"{name}.pbs").read_bytes()
    found = portable.unpack(data)
    stored = json.loads((FOLDER / f"{name}.json").read_text())
    # Up to rounding: what arms have learned is concluded from anew.
    assert leaves(summary(found, data)) == {
        path: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
        for path, value in leaves(stored).items()
    }
    Engine.start(replace(found.state.config, snapshot=data))


def test_a_suspicion_is_kept_whole_and_held_against_the_first_decisions_after_an_import() -> None:
    engine = STATES["suspect"]()
    data = portable.pack(engine.state, {})
    suspicion, kept = (
        engine.state.arms["dear"].suspicion,
        portable.unpack(data).state.arms["dear"].suspicion,
    )
    assert kept == suspicion and suspicion is not None
    other = Engine.start(replace(engine.state.config, snapshot=data))
    assert other.state.arms["dear"].suspicion == replace(suspicion, after=0)


def test_a_suspicion_of_layout_1_is_read() -> None:
    def suspect(head: dict[str, Any]) -> None:
        head["arms"][2]["suspicion"] = [-0.4, 31, 0.5, 1e9]

    data = altered(LAYOUT_1, suspect)
    assert portable.unpack(data).state.arms[2].suspicion == Suspicion(-0.4, 31, 0.5, 1e9, after=200)
    assert (
        Engine.start(replace(portable.unpack(data).state.config, snapshot=data))
        .state.arms[2]
        .suspicion
        is not None
    )


REPORTS = {"_journal", "_work", "_stack", "_k"}  # whom an object reports to, and where it works
KEPT_APART = {
    RouterState: {"config", "arms", "rng", "journal", "pacer", "buckets", "newcomers", "since"},
    Books: {"open_commitments", "forgotten"},
    Arm: {"name", "price", "per_1k", "log_price", "belief", "costs", "watch", "suspicion"},
    Belief: {"name", "d", "block", "inverse", "theta", "tails"},
    CostModel: {
        "name",
        "d",
        "block",
        "inverse",
        "w",
        "tails",
        "pending",
        "decay",
        "watch",
        "list_price",
        "mean_usd",
        "free",
        "_pool",
        "familiar",
        "input_share",
        "input_usd",
        "paid",
    },
    PromptTokens: {"in_use", "latest"},
    Window: {"contexts", "limited", "size", "next"},
    DualPacer: {"window", "budget_usd", "unreachable"},
    EmaPacer: {"budget_usd"},
    Watch: {"sigma", "mean", "up", "down"},
    Bucket: {"cap"},
}


@pytest.mark.parametrize(
    ("kinds", "written"),
    [
        ((RouterState, Books), {*pieces.COUNTERS} - {"unreachable"}),
        ((Arm, Belief, CostModel), {*export_arms.ARM, *export_arms.COSTS}),
        ((Knobs,), export_config.KNOBS),
        ((Cap,), export_config.CAP),
        ((Bucket,), {*pieces.BUCKET} - {"reached"} | {"exhausted"}),
        ((Suspicion,), export_arms.SUSPICION),
        ((Side,), export_arms.SIDE),
        ((Familiar,), export_arms.FAMILIAR),
        ((DualPacer,), {*pieces.DUAL, "idle"}),
        ((EmaPacer,), pieces.EMA),
        ((Watch,), ()),
        ((Window,), ()),
        ((PromptTokens,), ("mean", "count", "slots")),
        ((Price,), export_config.PRICE),
        ((ProjectionRef,), export_config.REF),
    ],
)
def test_nothing_of_a_state_is_left_out_of_a_file(
    kinds: tuple[type[Any], ...], written: Iterable[str]
) -> None:
    """What an object gains has to be written, by a name that older files may lack, or to be listed
    as kept apart or derived.
    """
    found = {name for kind in kinds for name in kind.__slots__} - REPORTS
    assert found == {*written, *(name for kind in kinds for name in KEPT_APART.get(kind, ()))}


def rounded(value: object) -> object:
    """Return a document with twelve digits of its numbers: the last ones are the processor's."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


@pytest.mark.parametrize("version", [1])
@pytest.mark.parametrize("profile", ["paper", "live"])
def test_every_version_that_was_ever_written_is_read(version: int, profile: str) -> None:
    data = (FIXTURES / f"router-{profile}-v{version}.pbs").read_bytes()
    expected = json.loads((FIXTURES / f"router-{profile}-v{version}.json").read_text())
    found = portable.unpack(data)
    assert rounded(summary(found, data)) == rounded(expected["summary"])
    other = Engine.start(replace(found.state.config, snapshot=data))
    made = other.decide("next", np.array([0.5, -0.25, 1.5, 1.0]), now=1e9 + 1000)
    assert made.candidates is not None
    assert [made.candidates.score(k) for k in range(3)] == pytest.approx(expected["scores"])


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_wherever_it_is(at: float, bit: int) -> None:
    damaged = bytearray(LIVE)
    damaged[int(at * len(damaged))] ^= 1 << bit
    with pytest.raises(CorruptSnapshot):
        portable.unpack(bytes(damaged))


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_that_was_cut_off_is_refused(share: float) -> None:
    data = LIVE
    with pytest.raises(
        CorruptSnapshot, match="truncated|foreign" if share * len(data) >= 1 else "foreign"
    ):
        portable.unpack(data[: int(share * len(data))])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda data: b"", "foreign"),
        (lambda data: b"PK\x03\x04" + data, "foreign"),
        (lambda data: b"\x80\x04\x95" + data, "foreign"),
        (lambda data: data + b"\x00", "damaged"),
        (lambda data: data.replace(b"\r\n", b"\n", 1), "foreign"),
        (
            lambda data: sealed(data[PREFIX.size :], version=3),
            "format 3 is newer than this program",
        ),
        (lambda data: sealed(data[PREFIX.size :], version=0), "damaged"),
        (lambda data: sealed(data[PREFIX.size : -8]), "shorter"),
        (lambda data: sealed(data[PREFIX.size :] + bytes(8)), "longer"),
        (lambda data: sealed(b""), "JSONDecodeError"),
        (lambda data: sealed(b"\x00\x00\x00\x02[]"), "TypeError"),
    ],
)
def test_what_is_no_true_file_is_refused_with_its_reason(
    spoil: Callable[[bytes], bytes], says: str
) -> None:
    with pytest.raises(CorruptSnapshot, match=says):
        portable.unpack(spoil(LIVE))


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(head: dict[str, Any]) -> None:
        at: Any = head
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("config", "dimensions", to=10**9),
        _set("config", "dimensions", to=5),
        _set("config", "budget_usd_per_request", to=None),
        _set("config", "knobs", "gamma", to=2.0),
        _set("counters", "t", to=-1),
        _set("counters", "t", to=0),
        _set("counters", "seq", to=1.5),
        _set("counters", "spend_usd", to=None),
        _set("pacer", "dual", "lambda_t", to=-1.0),
        _set("pacer", "dual", "window", "size", to=129),
        _set("pacer", "dual", "window", "size", to=-1),
        _set("pacer", "dual", "window", "next", to=128),
        _set("pacer", "dual", "window", "limited", to={"500": ["cheap"]}),
        _set("arms", 0, "name", to="dear"),
        _set("arms", 0, "name", to=""),
        _set("arms", 0, "name", to=7),
        _set("arms", 0, "price", "input_price_per_m", to=-1.0),
        _set("arms", 0, "decay", to=0.0),
        _set("arms", 0, "pulls_left", to=-3),
        _set("arms", 0, "pending", to=9),
        _set("arms", 0, "watch", to=[0.1]),
        _set(
            "arms",
            0,
            "suspicion",
            to={"offset": "a", "count": 1, "evidence": 2.0, "since": 3.0, "after": 4},
        ),
        _set("arms", 0, "suspicion", to={"offset": 0.1, "count": 1, "evidence": 2.0, "since": 3.0}),
        _set("arms", to=[]),
        _set("arms", to=None),
        _set("rng", "state", to="zz"),
        _set("buckets", to=[]),
    ],
)
def test_a_state_that_cannot_be_is_refused_even_with_a_true_checksum(
    change: Callable[[dict[str, Any]], None],
) -> None:
    def changed(head: dict[str, Any]) -> None:
        change(head["values"])

    portable.unpack(altered(LIVE, lambda head: None))
    with pytest.raises(CorruptSnapshot):
        portable.unpack(altered(LIVE, changed))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            _set("values", "echoes", to={}),
            "the router has echoes, which this program does not know: use a newer pbstream",
        ),
        (_set("values", "arms", 0, "echo", to=1), "an arm has echo, which"),
        (_set("values", "config", "knobs", "temper", to=1), "unknown knobs: temper"),
        (_set("arrays", 1, 0, to="arm/0/phi"), "arm/0/theta"),
        (_set("arrays", 1, 1, to="<i8"), "can't be"),
        (_set("arrays", 1, 2, to=[-4]), "can't be"),
        (_set("arrays", 1, 2, to=[2, 2]), "arm/0/theta has the shape"),
    ],
)
def test_pieces_that_this_program_does_not_know_are_named_instead_of_left_out(
    change: Callable[[Any], None], says: str
) -> None:
    with pytest.raises(CorruptSnapshot, match=re.escape(says)):
        portable.unpack(altered(LIVE, change))


def test_a_knob_that_a_file_lacks_is_that_of_its_own_profile() -> None:
    def drop(head: dict[str, Any]) -> None:
        del head["values"]["config"]["knobs"]["drift_alarms"]

    assert portable.unpack(altered(LIVE, drop)).state.config.knobs.drift_alarms


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e9])
def test_arrays_that_cannot_be_are_refused_even_with_a_true_checksum(number: float) -> None:
    rest = bytearray(LIVE[PREFIX.size :])
    first = 4 + int.from_bytes(rest[:4], "big")
    rest[first : first + 8] = struct.pack("<d", number)
    with pytest.raises(CorruptSnapshot, match="cheap"):
        portable.unpack(sealed(bytes(rest)))


def test_what_changed_between_two_files_is_named() -> None:
    engine, data = exported("live")
    before = portable.unpack(data)
    assert difference(before, before) == {"models": {}, "router": {}}
    play([engine], 200, 30)
    models = {**engine.state.config.models, "new": ModelConfig(DEAR)}
    engine.configure(
        replace(engine.state.config, models=models, budget_usd_per_request=9e-4), now=2e9
    )
    found = difference(before, portable.unpack(portable.pack(engine.state, {})))
    assert found["router"]["decided"] == [200, 230]
    assert found["router"]["budget_usd_per_request"] == [2e-3, 9e-4]
    assert found["models"]["new"] == {"change": "joined"}
    played = {engine.records[f"r-{number}"].model for number in range(200, 230)}
    moved = {
        name
        for name, model in found["models"].items()
        if model["change"] == "moved" and model["theta"] > 0.0
    }
    assert moved and moved <= played


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"gamma": 0.99, "alpha": 0.5, "t_adapt": 321.5},
        {"gamma": 1.0, "t_adapt": 50.0},
        {"seed": 9, "lambda_c": 0.2},
    ],
)
@pytest.mark.parametrize("profile", ["paper", "live"])
def test_the_declaration_from_an_import_is_that_of_the_exported_router(
    profile: str, knobs: dict[str, Any]
) -> None:
    from agents.declared import config_of
    from schemas import RouterDeclared, decode

    config = replace(declaration(profile=profile, pulls=None, **knobs), caps=CAPS)
    document = declaration_from(config, "other", b"bytes")
    again = config_of(decode(RouterDeclared, orjson.dumps(document)), offset=0, references={})
    assert again.knobs.n_eff == pytest.approx(config.knobs.n_eff)
    assert (
        replace(again, snapshot=None, knobs=replace(again.knobs, n_eff=config.knobs.n_eff))
        == config
    )
    assert again.snapshot == b"bytes"
