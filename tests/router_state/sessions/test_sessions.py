"""Conversations: what is warm, what a call saves, and what bills teach of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.cache_price import CachePrice
from router_state.changes import Journal, Outcome
from router_state.config import Price
from router_state.drawers import DRAWERS, IDLE_SECONDS, IN_DRAWER, Drawers
from router_state.events import Asked, Charged
from router_state.sessions.caching import FIRST_HIT, PIECE, Caching
from router_state.sessions.conversation import MOST_MODELS, Session
from router_state.sessions.sessions import Sessions
from router_state.sessions.turn import turn_of
from router_state.state import invariants, record_bytes
from router_state.state.config_bytes import config_body, config_from
from schemas.costs import CostReported
from schemas.event import MalformedEvent, decode
from schemas.reasons import Reason
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import context, declaration, freeze, having, thaw

X = context(1.0, 0.0, 0.0)
CACHE = CachePrice(read_per_m=0.1, ttl_seconds=300.0, min_tokens=1000)
PRICES = {"a": Price(1.0, 4.0), "b": Price(1.0, 4.0)}
CACHES = {"a": CACHE, "b": CACHE}


def engine(caches: Any = CACHES, *, known: int = 20, **declared: Any) -> Played:
    """Return a router of two like models that has counted input tokens apart for a while."""
    one = Played.start(declaration(PRICES, profile="live", budget=0.01, caches=caches, **declared))
    for n in range(known):
        one.decide(f"k{n}", X, now=0.0, input_tokens=10_000)
        one.settle(f"k{n}", cost_usd=0.012)
    return one


def drawers() -> Drawers[Session]:
    return Drawers(Session, "\x1fsession", Journal())


def ask(
    one: Played, request_id: str, *, at: float, tokens: int | None = 10_000, **more: Any
) -> Any:
    asked = Asked(request_id, X, input_tokens=tokens, session_id="s", **more)
    record = one.apply(asked, at).decision
    assert record is not None
    return record


def costs(record: Any) -> dict[str, float]:
    seen = record.candidates
    return dict(zip(seen.models, seen.expected_cost_usd, strict=True))


def test_a_call_costs_less_where_the_model_has_seen_the_prompt() -> None:
    one = engine()
    ask(one, "1", at=0.0, allowed_models=["a"])
    found = costs(ask(one, "2", at=10.0))
    # 90 % of the input price of 10,000 tokens, as often as bills are taken to show a hit.
    saved = found["b"] - found["a"]
    assert saved == pytest.approx(FIRST_HIT * 10_000 * 0.9e-6, rel=0.3) and saved > 0.0
    invariants.check(one.state, one.records)


@pytest.mark.parametrize(
    ("at", "tokens", "first", "warm"),
    [
        (299.0, 10_000, 9_000, {"a": 9_000}),
        (301.0, 10_000, 9_000, {}),  # the cache has expired
        (10.0, 8_999, 9_000, {}),  # the prompt was written anew
        (10.0, 9_000, 9_000, {"a": 9_000}),
        (10.0, 10_000, 999, {}),  # too short to be cached
        (10.0, None, 9_000, {}),
    ],
)
def test_what_is_warm(at: float, tokens: int | None, first: int, warm: dict[str, int]) -> None:
    one = engine()
    ask(one, "1", at=0.0, tokens=first, allowed_models=["a"])
    assert turn_of(ask(one, "2", at=at, tokens=tokens)).warm == warm


def test_a_switch_back_is_cheap_too() -> None:
    one = engine()
    ask(one, "1", at=0.0, allowed_models=["a"])
    ask(one, "2", at=1.0, tokens=11_000, allowed_models=["b"])
    assert turn_of(ask(one, "3", at=2.0, tokens=12_000)).warm == {"a": 10_000, "b": 11_000}


def test_without_sessions_or_caches_state_and_decisions_are_those_of_before() -> None:
    plain, told, named = engine({}), engine(), engine({})
    for n in range(30):
        for one, session in ((plain, None), (told, None), (named, "s")):
            asked = Asked(f"{n}", X, input_tokens=5_000, session_id=session)
            one.apply(asked, float(n))
            one.apply(Charged(f"{n}", 0.004), float(n))
    # Whose request it was is kept for rewards of the session, and changes nothing else.
    kept = [name for name in freeze(plain) if name.startswith("array")]
    assert {name: freeze(named)[name] for name in kept} == {
        name: freeze(plain)[name] for name in kept
    }
    assert [record.model for record in named.records.values()] == [
        record.model for record in plain.records.values()
    ]
    # And with each request what cached input cost, for its bill.
    kept += ["head"]
    assert {name: freeze(told)[name] for name in kept} == {
        name: freeze(plain)[name] for name in kept
    }


def test_writing_a_cache_may_cost_more_than_input() -> None:
    dear = CachePrice(read_per_m=0.1, write_per_m=1.25)
    one = engine({"a": dear})
    found = costs(ask(one, "1", at=0.0))
    assert found["a"] > found["b"]
    assert dear.counts_as(1000, 0, input_per_m=1.0, writes=False) == 1000
    assert dear.counts_as(1000, 400, input_per_m=0.0, writes=True) == 1000


def test_bills_teach_how_often_a_cache_is_hit() -> None:
    one = engine()
    chance = having(one.state, Sessions).caching.chance
    for n in range(60):
        ask(one, str(n), at=float(n), allowed_models=["a"])
        changes = one.apply(Charged(str(n), 0.01, cached=0), float(n))
    assert PIECE in changes.pieces
    assert chance("a") < 0.2 and chance("b") == FIRST_HIT


def test_a_bill_in_tokens_has_the_cached_price() -> None:
    one = engine()
    ask(one, "1", at=0.0, allowed_models=["a"])
    one.apply(Charged("1", tokens=(10_000, 100), cached=8_000), 1.0)
    bill = one.records["1"].bill
    assert bill is not None
    assert bill.cost_usd == pytest.approx((2_000 * 1.0 + 8_000 * 0.1 + 100 * 4.0) / 1e6)


def test_the_model_that_answered_is_warm_and_one_that_failed_is_not() -> None:
    one = engine()
    ask(one, "1", at=5.0, allowed_models=["a"])
    one.apply(Charged("1", 0.0, status="error"), 6.0)
    assert turn_of(ask(one, "2", at=7.0)).warm == {}
    one.apply(Charged("1", 0.01, model="b", revision=1), 8.0)
    assert turn_of(ask(one, "3", at=9.0)).warm["b"] == 10_000


def test_a_restart_and_a_replay_change_nothing() -> None:
    one = engine(known=0)
    for n in range(25):
        ask(one, f"{n}", at=float(n), tokens=2_000 + 100 * n)
        one.apply(Charged(f"{n}", 0.001, cached=100 * n), float(n))
    contexts = dict.fromkeys(one.records, X)
    other = thaw(freeze(one), contexts)
    assert freeze(other) == freeze(one)
    for n in range(25, 60):
        found = [ask(each, f"{n}", at=float(n), tokens=2_000 + 100 * n) for each in (one, other)]
        assert found[0].model == found[1].model
        assert record_bytes.pack_record(found[0]) == record_bytes.pack_record(found[1])
        for each in (one, other):
            each.apply(Charged(f"{n}", 0.001, cached=1000), float(n))
    assert freeze(other) == freeze(one)
    again = ask(one, "59", at=99.0)
    assert again.seq == one.state.seq
    late = one.apply(Charged("59", 0.001, cached=1000), 99.0)
    assert late.outcome is Outcome.DUPLICATE


def test_a_router_that_drops_its_cached_prices_forgets_what_saved() -> None:
    one = engine()
    ask(one, "1", at=0.0)
    one.configure(declaration(PRICES, profile="live", budget=0.01), now=1.0)
    # Rewards of its sessions may still come.
    sessions = having(one.state, Sessions)
    assert len(sessions.known) == 1 and sessions.caching.values() is None


def test_the_sessions_of_a_router_are_bounded_and_the_idle_ones_go_first() -> None:
    known, names = drawers(), [f"s{n}" for n in range(3 * DRAWERS * IN_DRAWER)]
    for n, name in enumerate(names):
        known.use(name, Session(1, n / 1000, {}))
        known.use("busy", Session(1, n / 1000, {}))
    assert len(known) <= DRAWERS * IN_DRAWER
    assert known.find("busy") is not None and known.find(names[0]) is None
    assert known.find(names[-1]) is not None
    known.use("busy", Session(1, IDLE_SECONDS * 3, {}))
    assert known.are_sound()


def test_a_session_of_a_million_turns_takes_no_more_room_than_one_of_ten() -> None:
    known, session = drawers(), Session(0, 0.0, {})
    sizes = []
    for n in range(1_000):
        session.turns, session.at = n + 1, float(n)
        session.seen(f"m{n}", n, at=float(n))
        known.use("s", session)
        sizes.append(len(str(known.pack(known.pieces[0]))))
    assert known.find("s") is session and len(session.warm) == MOST_MODELS
    session.turns = 10**6
    assert len(str(known.pack(known.pieces[0]))) < 2 * sizes[10]


@given(st.lists(st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 10**9)), max_size=40))
def test_drawers_come_back_as_they_were(turns: list[tuple[str, int]]) -> None:
    known, other = drawers(), drawers()
    for n, (name, tokens) in enumerate(turns):
        session = known.find(name) or Session(0, 0.0, {})
        session.turns, session.at = session.turns + 1, float(n)
        session.seen("m", tokens, at=float(n))
        known.use(name, session)
    other.restore(lambda piece: known.pack(piece) or b"")
    assert sorted(other.pieces) == sorted(known.pieces)
    assert [known.pack(piece) for piece in known.pieces] == [
        other.pack(piece) for piece in known.pieces
    ]
    assert known.pack("\x1fhead") is None


def test_caching_comes_back_as_it_was() -> None:
    known, other = Caching(Journal()), Caching(Journal())
    assert known.values() is None
    known.learn("a", 3.0)
    known.place(7, {"a": 12.5})
    other.restore(orjson.dumps(known.values()))
    assert other.values() == known.values()
    known.place(7, None)
    assert known.slots == {}


def test_a_configuration_keeps_prices_of_caches() -> None:
    config = declaration(PRICES, caches={"a": CACHE})
    again = config_from(config_body(config))
    assert again.capabilities == {"caches": {"a": CACHE}}
    assert b"caches" not in config_body(declaration(PRICES))


MODEL = '{"router_id":"r","models":{"m":{"input_price_per_m":1,"output_price_per_m":1,%s}}}'


@pytest.mark.parametrize(
    ("schema", "raw"),
    [
        (RouterDeclared, MODEL.replace("%s", '"cached_input_price_per_m":2')),
        (RouterDeclared, MODEL.replace("%s", '"cache_ttl_seconds":300')),
        (
            RouterDeclared,
            MODEL.replace("%s", '"cached_input_price_per_m":0.1,"cache_ttl_seconds":-1'),
        ),
        (
            CostReported,
            '{"router_id":"r","request_id":"1","cost_usd":1,"input_tokens":5,'
            '"cached_input_tokens":6}',
        ),
    ],
)
def test_what_no_cache_can_be_is_refused(schema: Any, raw: str) -> None:
    with pytest.raises(MalformedEvent) as refused:
        decode(schema, raw.encode())
    assert refused.value.reason is Reason.INVALID_FIELD


def test_a_bill_has_the_cached_price_of_its_decision() -> None:
    one = engine()
    for name in ("1", "2"):
        ask(one, name, at=0.0, allowed_models=["a"])
    dear = {"a": CachePrice(read_per_m=0.9), "b": CACHE}
    prices = {"a": Price(2.0, 4.0), "b": Price(1.0, 4.0)}
    again = thaw(freeze(one), dict.fromkeys(one.records, X))
    for each in (one, again):
        changed = declaration(prices, profile="live", budget=0.01, caches=dear, offset=9)
        each.configure(changed, now=1.0)
        each.settle("1", tokens=(10_000, 0), cached=9_000)
        # 1,000 tokens at 1 dollar per million, and 9,000 at 0.1.
        assert each.state.spend_usd - 20 * 0.012 == pytest.approx(0.0019)
        # Of another model that answered, what it costs now.
        each.settle("2", tokens=(10_000, 0), cached=9_000, model="b")
        assert each.state.spend_usd - 20 * 0.012 == pytest.approx(2 * 0.0019)
    late = ask(one, "3", at=2.0, allowed_models=["a"])
    one.settle("3", tokens=(10_000, 0), cached=9_000)
    assert one.state.spend_usd - 20 * 0.012 == pytest.approx(2 * 0.0019 + 0.002 + 0.0081)
    assert turn_of(late).cache == dear["a"]
    invariants.check(one.state, one.records)


def test_a_price_of_cached_input_that_came_after_the_decision_is_not_the_bills() -> None:
    one = engine({})
    ask(one, "1", at=0.0, allowed_models=["a"])
    changed = declaration(PRICES, profile="live", budget=0.01, caches=CACHES, offset=9)
    one.configure(changed, now=1.0)
    one.settle("1", tokens=(10_000, 0), cached=9_000)
    assert one.state.spend_usd - 20 * 0.012 == pytest.approx(0.01)
