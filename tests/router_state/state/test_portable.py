"""A router in a file goes on as the exported one; a truncated or damaged file is refused."""

from __future__ import annotations

import ast
import hashlib
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.caps.bucket import Bucket, Cap
from router_state.changes import CONFIG, HEAD
from router_state.config import ModelConfig, RouterConfig
from router_state.costs.input_tokens import InputTokens
from router_state.errors import CorruptSnapshot, InvalidConfig
from router_state.kernel import (
    Arm,
    CostModel,
    Debt,
    Detector,
    PosteriorSample,
    Regression,
    SharedPrior,
    Side,
    Window,
)
from router_state.kernel.learning.suspicion import Suspicion
from router_state.pacing.dollar_dual import DollarDual
from router_state.pacing.ema_pacer import EmaPacer
from router_state.packing import layout
from router_state.packing.framing import body_of, frame
from router_state.periods.hourly_traffic import Traffic
from router_state.periods.ledger import Ledger
from router_state.router import RouterState
from router_state.state import invariants, portable, state_pieces
from router_state.totals import Forgotten, Totals
from streams.state.exporting import declaration_from
from streams.state.snapshots import difference
from tests.router_state.core_reference import CHEAP, DEAR, declaration, freeze
from tests.router_state.router_states import STATES, buckets_of

LIVE = portable.pack(STATES["capped"]().state, {})
PREFIX = struct.Struct(">8sHQ32s")
CAPS = (Cap(5.0, 3600.0), Cap(60.0, 86_400.0, hard=True))


def configuration(profile: str, d: int = 4, **changed: Any) -> RouterConfig:
    """Return a router with caps and exploration at random."""
    return replace(
        declaration(
            **dict[str, Any](dimensions=d, profile=profile, pulls=2, epsilon=0.1, budget=2e-3)
            | changed
        ),
        capabilities={"caps": CAPS},
    )


def play(engines: list[Played], first: int, count: int, *, seed: int = 1) -> None:
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


def exported(profile: str, d: int = 4, count: int = 200) -> tuple[Played, bytes]:
    """Return an engine after some traffic, and its file."""
    engine = Played.start(configuration(profile, d))
    play([engine], 0, count)
    return engine, portable.pack(
        engine.state,
        {"router_id": "home", "service": "test", "exported_at": "2026-11-21T12:00:00Z"},
    )


def sealed(rest: bytes, *, magic: bytes = portable.MAGIC, version: int = portable.VERSION) -> bytes:
    """Put a true frame around what may be nonsense."""
    return PREFIX.pack(magic, version, len(rest), hashlib.sha256(rest).digest()) + rest


def pieces_of(data: bytes) -> dict[str, bytes]:
    """Return the pieces in a file."""
    rest = data[PREFIX.size :]
    at = 4 + int.from_bytes(rest[:4], "big")
    found = {}
    for name, size in orjson.loads(rest[4:at])["pieces"]:
        found[name], at = rest[at : at + size], at + size
    return found


def packed(pieces: dict[str, bytes]) -> bytes:
    """Return a file of these pieces."""
    sizes = [[name, len(piece)] for name, piece in pieces.items()]
    head = orjson.dumps({"about": {}, "pieces": sizes})
    return sealed(b"".join([len(head).to_bytes(4, "big"), head, *pieces.values()]))


def altered(data: bytes, piece: str, change: Callable[[Any], Any]) -> bytes:
    """Change a piece of a file that is JSON, and give both true checksums again."""
    pieces = pieces_of(data)
    body = orjson.loads(body_of(pieces[piece]))
    change(body)
    return packed(pieces | {piece: frame(orjson.dumps(body))})


@pytest.mark.parametrize("d", [4, 70])
@pytest.mark.parametrize("profile", ["paper", "live"])
def test_a_router_goes_on_from_a_file_as_the_one_that_was_exported(profile: str, d: int) -> None:
    engine, data = exported(profile, d)
    other = Played.start(replace(configuration(profile, d), snapshot=data, offset=7))
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
    assert buckets_of(engine.state) == buckets_of(other.state)


def test_every_piece_of_a_started_router_is_written() -> None:
    _, data = exported("live")
    state = Played.start(replace(configuration("live"), snapshot=data)).state
    assert state.journal.pieces == set(state_pieces.piece_names(state))
    assert sum(name.startswith("\x1fwindow") for name in state_pieces.piece_names(state)) == 16


def test_the_declaration_decides_who_is_in_the_portfolio_and_at_which_price() -> None:
    engine, data = exported("live")
    declared = configuration("live", budget=4e-3)
    models = {"dear": ModelConfig(CHEAP), "new": ModelConfig(DEAR)}
    state = Played.start(replace(declared, models=models, snapshot=data)).state
    assert state.arms.names == ("dear", "new")
    assert [arm.price for arm in state.arms] == [CHEAP, DEAR]
    known = engine.state.arms["dear"].rewards.theta
    # What it shares moves as another joins.
    assert state.arms[0].rewards.theta == pytest.approx(known, abs=0.05)
    with pytest.raises(InvalidConfig):
        Played.start(replace(configuration("live", 5), snapshot=data))


@pytest.mark.parametrize("name", STATES)
def test_a_router_in_any_state_is_the_same_after_writing_and_reading(name: str) -> None:
    engine = STATES[name]()
    data = portable.pack(engine.state, {})
    found = portable.unpack(data)
    assert portable.pack(found.state, found.about) == data
    other = Played.start(replace(engine.state.config, snapshot=data))
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


def play_both(engine: Played, other: Played) -> None:
    """Let a router and the one that started from its file decide, and learn, alike."""
    for number in range(30):
        x = np.append(np.random.default_rng(number).normal(size=engine.state.arms.d - 1), 1.0)
        made = [one.decide(f"later-{number}", x, now=2e9 + number) for one in (engine, other)]
        assert made[0].model == made[1].model
        assert made[0].candidates == made[1].candidates
        for one in (engine, other):
            one.learn(f"later-{number}", reward=0.3)
            one.settle(f"later-{number}", cost_usd=2e-4)


def test_a_suspicion_is_kept_whole_and_held_against_the_first_decisions_after_an_import() -> None:
    engine = STATES["suspect"]()
    data = portable.pack(engine.state, {})
    suspicion, kept = (
        engine.state.arms["dear"].suspicion,
        portable.unpack(data).state.arms["dear"].suspicion,
    )
    assert kept == suspicion and suspicion is not None
    other = Played.start(replace(engine.state.config, snapshot=data))
    assert other.state.arms["dear"].suspicion == replace(suspicion, after=0)


REPORTS = {"_journal", "journal", "pieces", "values"}  # whom an object reports to, where it works
KEPT_APART = {
    RouterState: {
        "arms",
        "capabilities",
        "chance",
        "config",
        "journal",
        "pacer",
        "since",
    },
    Totals: {"open_commitments"},
    Arm: {"name", "price", "suspicion"},
    Regression: {"piece", "array", "pending", "moved"},
    CostModel: {"prior"},
    SharedPrior: {"name", "d", "mean", "center", "guess"},
    DollarDual: {"budget_usd"},
    EmaPacer: {"budget_usd", "per_log_price"},
    Window: {"contexts", "limited"},
    Bucket: {"cap"},
    Ledger: {"spending", "budgets", "holdings", "traffic"},
    Traffic: {"declared", "zone", "sums", "weights"},
}
DERIVED = {
    Ledger: {"accounts"},
    RouterState: {"hooks", "newcomers", "policy"},
    Arm: {"per_1k", "log_price"},
    EmaPacer: {"unreachable"},
    Window: {"d"},
    Regression: {"d", "at", "shared"},
    CostModel: {"list_price", "free", "input_usd"},
    InputTokens: {"in_use"},
    Traffic: {"_offset", "_offset_hour", "_shape"},
}


def fields(kind: type) -> list[str]:
    """Return the names of what objects of a kind hold."""
    found: list[str] = []
    for one in kind.__mro__:
        stub = Path(*one.__module__.split(".")).with_suffix(".pyi")
        if stub.exists():
            # The kernel's classes say it where their types stand.
            known = next(
                node
                for node in ast.parse(stub.read_text()).body
                if isinstance(node, ast.ClassDef) and node.name == one.__name__
            )
            found += [
                ast.unparse(node.target) for node in known.body if isinstance(node, ast.AnnAssign)
            ]
        else:
            found += getattr(one, "__slots__", ())
    return found


def under(path: str, *numbers: layout.Numbers) -> set[str]:
    """Return which attributes of the object at a path are written."""
    names = [name for one in numbers for name in one.names]
    return {name.removeprefix(path).split(".")[0] for name in names if name.startswith(path)}


@pytest.mark.parametrize(
    ("kinds", "written"),
    [
        ((RouterState, Totals), under("", layout.COUNTERS)),
        ((Forgotten,), under("forgotten.", layout.COUNTERS)),
        ((Arm,), under("", layout.HEAD, layout.REWARDS, layout.COSTS)),
        ((Regression,), under("rewards.", layout.REWARDS)),
        ((CostModel,), under("costs.", layout.HEAD, layout.COSTS)),
        ((Detector,), under("detector.", layout.REWARDS)),
        ((Detector,), under("costs.detector.", layout.COSTS)),
        ((Side,), under("detector.up.", layout.REWARDS)),
        ((Side,), under("costs.detector.down.", layout.COSTS)),
        ((Suspicion,), under("", layout.SUSPICION)),
        ((SharedPrior,), under("", layout.SHARED)),
        ((DollarDual,), under("", layout.DUAL)),
        ((Debt,), under("debt.", layout.DUAL)),
        ((Window,), under("", layout.WINDOW)),
        ((EmaPacer,), under("", layout.EMA)),
        ((Bucket,), {"left_usd", "at", "exhausted"}),
        ((PosteriorSample,), {"d", "K", "array", "decided", "left"}),
        ((InputTokens,), {"mean", "count", "slots"}),
        ((Ledger,), set(Ledger.NUMBERS)),
        ((Traffic,), set(Traffic.NUMBERS)),
    ],
)
def test_nothing_of_a_state_is_left_out_of_a_file(
    kinds: tuple[type[Any], ...], written: set[str]
) -> None:
    """What an object gains has to be declared in `layout`, or to be listed as kept apart or
    derived."""
    found = {name for kind in kinds for name in fields(kind)} - REPORTS
    listed = {
        name for kind in kinds for lists in (KEPT_APART, DERIVED) for name in lists.get(kind, ())
    }
    assert found == (written | listed) - REPORTS
    assert not written & listed


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
            lambda data: sealed(data[PREFIX.size :], version=portable.VERSION + 1),
            "use the pbstream that wrote it",
        ),
        (lambda data: sealed(data[PREFIX.size :], version=0), "format 0 of the file is not"),
        (lambda data: sealed(data[PREFIX.size : -8]), "not as long as its head says"),
        (lambda data: sealed(data[PREFIX.size :] + bytes(8)), "not as long as its head says"),
        (lambda data: sealed(b""), "snapshot"),
        (lambda data: sealed(b"\x00\x00\x00\x02[]"), "head of the file"),
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


def _counter(name: str, to: Any) -> Callable[[dict[str, Any]], None]:
    return _set("counters", layout.COUNTERS.names.index(name), to=to)


def _dual(name: str, to: Any) -> Callable[[dict[str, Any]], None]:
    names = *layout.DUAL.names, *(f"window.{one}" for one in layout.WINDOW.names)
    return _set("dual", names.index(name), to=to)


def _arm(name: str, to: Any) -> Callable[[dict[str, Any]], None]:
    return _set("arms", 0, layout.HEAD.names.index(name), to=to)


@pytest.mark.parametrize(
    ("piece", "change"),
    [
        (CONFIG, _set("dimensions", to=10**6)),
        (CONFIG, _set("dimensions", to=5)),
        (CONFIG, _set("budget", to=None)),
        (CONFIG, _set("knobs", "gamma", to=2.0)),
        (CONFIG, _set("profile", to="paper")),
        (HEAD, _counter("t", -1)),
        (HEAD, _counter("t", 0)),
        (HEAD, _counter("seq", 1.5)),
        (HEAD, _counter("spent.usd", None)),
        (HEAD, _counter("forgotten.bills", -1)),
        (HEAD, _set("dual", to=None)),
        (HEAD, _dual("lambda_t", -1.0)),
        (HEAD, _dual("debt.usd", None)),
        (HEAD, _dual("debt.settled", -1.0)),
        (HEAD, _dual("window.size", 129)),
        (HEAD, _dual("window.size", -1)),
        (HEAD, _dual("window.next", 128)),
        (HEAD, _set("names", 0, to="dear")),
        (HEAD, _set("names", 0, to="")),
        (HEAD, _set("names", 0, to=7)),
        (HEAD, _set("names", to=[])),
        (HEAD, _set("prices", 0, to=[-1.0, 1.0])),
        (HEAD, _set("prices", to=[])),
        (HEAD, _arm("pulls_left", -3)),
        (HEAD, _arm("pulls_left", 0.5)),
        (HEAD, _arm("last_played", 10**6)),
        (HEAD, _arm("costs.awaited", None)),
        (HEAD, _set("arms", to=[])),
        (HEAD, _set("arms", to=None)),
        (HEAD, _set("chance", to="zz")),
        (HEAD, _set("caps", to=[])),
        (HEAD, _set("since", to=None)),
    ],
)
def test_a_state_that_cannot_be_is_refused_even_with_a_true_checksum(
    piece: str, change: Callable[[dict[str, Any]], None]
) -> None:
    assert portable.unpack(altered(LIVE, piece, lambda body: None)).state.seq == 20
    with pytest.raises(CorruptSnapshot):
        portable.unpack(altered(LIVE, piece, change))


def test_a_limit_of_a_slot_that_a_window_has_not_is_refused() -> None:
    pieces = pieces_of(LIVE)
    name = next(name for name in pieces if name.startswith("\x1fwindow"))
    limited = orjson.dumps({"500": ["cheap"]})
    contexts = body_of(pieces[name])[: 8 * 4 * 4]
    with pytest.raises(CorruptSnapshot, match="contexts"):
        portable.unpack(packed(pieces | {name: frame(contexts + limited)}))


def test_a_file_without_one_of_its_pieces_is_refused() -> None:
    pieces = pieces_of(LIVE)
    for name in pieces:
        with pytest.raises(CorruptSnapshot):
            portable.unpack(packed({one: pieces[one] for one in pieces if one != name}))


ARRAYS = ["cheap", "\x1fcost:cheap", "\x1frewards", "\x1fbills", "\x1fdraw"]


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e9])
@pytest.mark.parametrize("piece", ARRAYS[:4])
def test_numbers_that_cannot_be_are_refused_even_with_a_true_checksum(
    piece: str, number: float
) -> None:
    pieces = pieces_of(LIVE)
    body = struct.pack("<d", number) + body_of(pieces[piece])[8:]
    with pytest.raises(CorruptSnapshot, match=r"cheap|rewards|bills"):
        portable.unpack(packed(pieces | {piece: frame(body)}))


@pytest.mark.parametrize("piece", ARRAYS)
def test_an_array_of_another_length_or_with_a_nan_is_refused(piece: str) -> None:
    pieces = pieces_of(LIVE)
    body = body_of(pieces[piece])
    nan = struct.pack("<d", np.nan)
    # Somewhere in the arrays, behind the numbers and before the last, which are counts.
    middle = len(body) // 16 * 8
    for changed in (
        body[:-8],
        body[:-1],
        body + bytes(8),
        body[:middle] + nan + body[middle + 8 :],
    ):
        with pytest.raises(CorruptSnapshot):
            portable.unpack(packed(pieces | {piece: frame(changed)}))


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
    assert moved & played


@pytest.mark.parametrize(
    ("profile", "knobs"),
    [
        ("paper", {}),
        ("live", {}),
        ("paper", {"gamma": 0.99, "alpha": 0.5, "t_adapt": 321.5}),
        ("live", {"gamma": 0.99, "epsilon": 0.5, "t_adapt": 321.5}),
        ("paper", {"gamma": 1.0, "t_adapt": 50.0}),
        ("live", {"gamma": 1.0, "t_adapt": 50.0}),
        ("paper", {"seed": 9, "lambda_c": 0.2}),
        ("live", {"seed": 9, "epsilon": 0.1}),
    ],
)
def test_the_declaration_from_an_import_is_that_of_the_exported_router(
    profile: str, knobs: dict[str, Any]
) -> None:
    from agents.declaring.configuration import config_of
    from schemas import RouterDeclared, decode

    config = replace(declaration(profile=profile, pulls=None, **knobs), capabilities={"caps": CAPS})
    document = declaration_from(config, "other", b"bytes")
    again = config_of(decode(RouterDeclared, orjson.dumps(document)), offset=0, references={})
    assert again.knobs.n_eff == pytest.approx(config.knobs.n_eff)
    assert (
        replace(again, snapshot=None, knobs=replace(again.knobs, n_eff=config.knobs.n_eff))
        == config
    )
    assert again.snapshot == b"bytes"
