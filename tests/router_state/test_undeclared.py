"""Capabilities that need no declaration: a router has them from the first event on that is about
one of them, and a restored one if it holds anything of them."""

from __future__ import annotations

from copy import copy
from typing import Any

import pytest

from benchmarks.played import Played
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Declared, Verifier
from router_state.cache_price import CachePrice
from router_state.config import Price
from router_state.events import Follows
from router_state.registered import KINDS
from router_state.state import restoring, state_pieces
from tests.router_state.core_reference import context, declaration

X = context(1.0, 0.0, 0.0)
UNDECLARED = tuple(kind for kind in KINDS if kind.undeclared)


def kinds(one: Played) -> tuple[type, ...]:
    """Return the classes of a router's capabilities."""
    return tuple(map(type, one.state.capabilities))


def restored(one: Played) -> Played:
    """Return a router put together from another one's pieces, with its requests."""
    pieces = state_pieces.pack_pieces(one.state)
    opened = one.state.open_commitments
    records = {name: copy(record) for name, record in one.records.items()}
    return Played(restoring.unpack(pieces.get, opened), records)


def test_a_plain_router_has_no_capability_and_calls_no_hook() -> None:
    one = Played.start(declaration(profile="live"))
    one.decide("1", X, now=0.0)
    one.settle("1", 1e-3, status="ok")
    one.learn("1", reward=1.0)
    hooks = one.state.hooks
    assert kinds(one) == kinds(restored(one)) == ()
    assert not any(getattr(hooks, name) for name in hooks.__struct_fields__)


@pytest.mark.parametrize("asked", [{"session_id": "talk"}, {"fields": {"runs": 1.0}}])
def test_a_request_that_says_something_of_one_is_their_begin(asked: dict[str, Any]) -> None:
    one = Played.start(declaration(profile="live"))
    one.decide("1", X, now=0.0, **asked)
    assert kinds(one) == UNDECLARED and one.state.hooks.complete


def test_hooks_for_requests_that_follow_others_are_called_from_the_first_of_them_on() -> None:
    declared = Declared({"tests": Verifier()})
    one = Played.start(declaration(profile="live", others={Attempts.name: declared}))
    one.decide("1", X, now=0.0)
    assert kinds(one) == (Attempts,)
    for router in (one, restored(one)):
        hooks = router.state.hooks
        assert hooks.follow and not (hooks.expect or hooks.limits or hooks.decided)
        router.decide("2", X, now=1.0, follows=Follows("1"))
        hooks, attempts = router.state.hooks, router.state.capabilities[UNDECLARED.index(Attempts)]
        assert isinstance(attempts, Attempts)
        assert hooks.expect and hooks.decided and hooks.limits
        assert (call := router.records["2"].call) is not None and attempts.name in call.kept


def test_a_request_that_says_something_of_a_declared_one_only_begins_none() -> None:
    one = Played.start(declaration(profile="live"))
    declared = next(kind for kind in KINDS if not kind.undeclared)
    one.decide("1", X, now=0.0, fields={declared.name: {"some": "field"}})
    assert kinds(one) == ()


def test_a_call_that_fails_is_their_begin_and_what_holds_something_is_restored() -> None:
    one = Played.start(declaration(profile="live"))
    one.decide("1", X, now=0.0)
    one.settle("1", 0.0, status="error")
    assert kinds(one) == UNDECLARED
    assert [kind.name for kind in kinds(restored(one))] == ["error_reward"]  # type: ignore[attr-defined]


def test_a_bill_has_its_discount_after_the_declaration_that_named_it_and_a_restart() -> None:
    cache = CachePrice(read_per_m=0.01, ttl_seconds=300.0, min_tokens=1000)
    prices = {"a": Price(1.0, 2.0)}
    one = Played.start(declaration(prices, profile="live", caches={"a": cache}))
    one.decide("1", X, now=0.0, input_tokens=2000)
    one.configure(declaration(prices, profile="live", offset=1), now=1.0)
    again = restored(one)
    assert kinds(again) == ()
    for router in (one, again):
        router.settle("1", tokens=(2000, 100), cached=2000)
    assert again.state.spend_usd == one.state.spend_usd < 1e-3
    assert state_pieces.pack_pieces(again.state) == state_pieces.pack_pieces(one.state)
