"""Prices of long inputs: what calls are expected to cost, what bills are, and what is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.cache_price import CachePrice, usd_of
from router_state.config import Price, Tier
from router_state.costs.input_tokens import IN_USE_FROM
from router_state.events import Redeclared
from router_state.long_inputs.long_inputs import LongInputs
from router_state.pacing.scoring import candidates
from schemas.event import MalformedEvent, decode
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import freeze
from tests.router_state.declared_engine import DEAR, PRICE, again, ask, config, engine

ABOVE = [
    {"input_tokens": 1000, "input_price_per_m": 2.0, "output_price_per_m": 6.0},
    {"input_tokens": 5000, "input_price_per_m": 3.0, "output_price_per_m": 6.0},
]
LONG = {**PRICE, "price_above": ABOVE}
LISTED = Price(1.0, 4.0, (Tier(1000, 2.0, 6.0), Tier(5000, 3.0, 6.0)))


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [
        (0, 4e-4),
        (1000, 1e-3 + 4e-4),
        (1001, 2.002e-3 + 6e-4),
        (5000, 1e-2 + 6e-4),
        (5001, 0.0156030),
    ],
)
def test_the_whole_call_has_the_price_of_its_input(tokens: int, usd: float) -> None:
    """As LiteLLM bills `input_cost_per_token_above_200k_tokens`: above the threshold, and all."""
    assert LISTED.cost_usd(input_tokens=tokens, output_tokens=100) == pytest.approx(usd)
    one = engine({"a": LONG, "b": DEAR})
    ask(one, "1", allowed_models=["a"])
    one.settle("1", None, tokens=(tokens, 100))
    assert one.records["1"].bill is not None
    assert one.records["1"].bill.cost_usd == pytest.approx(usd)


def test_a_bill_has_the_prices_of_its_decision() -> None:
    one = engine({"a": LONG})
    ask(one, "1")
    one.apply(Redeclared(config({"a": {**LONG, "price_above": ABOVE[:1]}}, offset=2)), 1.0)
    other = again(one)
    for played in (one, other):
        ask(played, "2")
        played.settle("1", None, tokens=(6000, 0))
        played.settle("2", None, tokens=(6000, 0))
        found = [played.records[name].bill for name in "12"]
        assert [bill and round(bill.cost_usd, 6) for bill in found] == [0.018, 0.012]
    assert freeze(one) == freeze(other)


def test_cached_input_is_cheaper_by_the_same_share() -> None:
    models = {"a": {**LONG, "cached_input_price_per_m": 0.1}}
    one = engine(models)
    ask(one, "1")
    one.settle("1", None, tokens=(6000, 0), cached=6000)
    bill = one.records["1"].bill
    # A tenth of $3 per million.
    assert bill is not None and bill.cost_usd == pytest.approx(0.0018)
    cache = CachePrice(read_per_m=0.1)
    again_usd = usd_of(LISTED, input_tokens=6000, output_tokens=0, cached=6000, cache=cache)
    assert again_usd == pytest.approx(0.0018)


def taught(*, long: bool) -> Any:
    """Return an engine that has learned the same calls, at list prices or at those of long
    inputs."""
    one = engine({"a": LONG, "b": DEAR}, budget_usd_per_request=0.01)
    rng = np.random.default_rng(3)
    for n in range(60):
        tokens = int(rng.integers(1500, 4000)) if long else int(rng.integers(100, 900))
        ask(one, str(n), allowed_models=["a"], input_tokens=tokens, now=float(n))
        one.settle(str(n), None, tokens=(tokens, 200))
    return one


def test_what_long_inputs_cost_more_is_known_and_not_learned() -> None:
    one = taught(long=True)
    costs = one.state.arms["a"].costs
    assert not one.take_alerts() or all(a.kind != "drift" for a in one.take_alerts())
    # A short call is expected at its own price although all that was billed was long.
    short = ask(one, "short", allowed_models=["a"], input_tokens=500, now=99.0)
    assert short.expected_cost_usd == pytest.approx(500e-6 + 200 * 4e-6, rel=0.35)
    long = ask(one, "long", allowed_models=["a"], input_tokens=3000, now=99.0)
    assert long.expected_cost_usd == pytest.approx(3000 * 2e-6 + 200 * 6e-6, rel=0.2)
    longest = ask(one, "longest", allowed_models=["a"], input_tokens=9000, now=99.0)
    assert longest.expected_cost_usd == pytest.approx(9000 * 3e-6 + 200 * 6e-6, rel=0.2)
    assert costs.list_price == pytest.approx(Price(1.0, 4.0).per_1k)


def test_the_window_of_the_dual_has_the_same_prices() -> None:
    one = taught(long=False)
    ask(one, "long", allowed_models=["a"], input_tokens=3000, now=99.0)
    arms = one.state.arms
    assert arms.window is not None
    slot = next(iter(one.state.having(LongInputs).lengths))
    costs = candidates(arms.window, arms).arrays()[1]
    record = one.records["long"]
    from router_state.kernel import PRICES

    assert costs[slot, 0] == pytest.approx(record.expected_cost_usd * PRICES.item(slot))


def test_before_enough_lengths_are_known_the_whole_call_becomes_dearer() -> None:
    one = engine({"a": LONG, "b": DEAR})
    plain = ask(one, "1", allowed_models=["a"]).expected_cost_usd
    long = ask(one, "2", allowed_models=["a"], input_tokens=1001).expected_cost_usd
    assert IN_USE_FROM > 2 and long == pytest.approx(plain * 8.0 / 5.0)


@given(
    tokens=st.integers(0, 10_000),
    output=st.integers(1, 10_000),
    prices=st.tuples(*[st.floats(0.01, 100.0)] * 4),
)
def test_a_bill_at_list_price_is_found_from_that_of_a_long_input(
    tokens: int, output: int, prices: tuple[float, ...]
) -> None:
    price = Price(prices[0], prices[1], (Tier(500, prices[2], prices[3]),))
    usd = price.cost_usd(input_tokens=tokens, output_tokens=output)
    listed = Price(prices[0], prices[1]).cost_usd(input_tokens=tokens, output_tokens=output)
    assert price.listed_usd(usd, tokens) == pytest.approx(listed, rel=1e-6)


@pytest.mark.parametrize(
    ("above", "why"),
    [
        ([], "price_above"),
        ([ABOVE[1], ABOVE[0]], "must rise"),
        ([ABOVE[0], ABOVE[0]], "must rise"),
        ([{**ABOVE[0], "input_tokens": 0}], "input_tokens"),
        ([{**ABOVE[0], "input_price_per_m": -1}], "input_price_per_m"),
        ([{"input_tokens": 5}], "missing"),
    ],
)
def test_prices_of_long_inputs_that_are_none_are_refused(above: Any, why: str) -> None:
    raw = {"router_id": "r", "models": {"a": {**PRICE, "price_above": above}}}
    with pytest.raises(MalformedEvent, match=why):
        decode(RouterDeclared, orjson.dumps(raw))


def test_a_free_model_has_no_other_prices() -> None:
    free = {"input_price_per_m": 0, "output_price_per_m": 0, "price_above": ABOVE}
    with pytest.raises(MalformedEvent, match="above 0"):
        decode(RouterDeclared, orjson.dumps({"router_id": "r", "models": {"a": free}}))
