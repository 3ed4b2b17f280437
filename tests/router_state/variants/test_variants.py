"""Variants: what is called, and with which parameters, stands on each decision that names them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.publishing.published_values import FALLBACKS, route_value
from router_state.events import Charged, Redeclared
from router_state.variants.variants import NAMED
from schemas.event import MalformedEvent, decode
from schemas.model_calls import MAX_PARAMS_BYTES, MAX_PARAMS_DEPTH, canonical
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import freeze
from tests.router_state.declared_engine import DEAR, PRICE, X, again, ask, config, engine, published

HIGH = {"reasoning_effort": "high", "tags": [1, 2.5, None, {"a": True}]}
MODELS: dict[str, Any] = {
    "gpt-x": PRICE,
    "gpt-x-high": {**DEAR, "variant_of": "gpt-x", "params": HIGH},
    "far-eu": {**PRICE, "variant_of": "far"},
    "cool": {**PRICE, "params": {"temperature": 0}},
}
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def declared(models: dict[str, Any]) -> RouterDeclared:
    return decode(RouterDeclared, orjson.dumps({"router_id": "r", "models": models}))


def refusal(models: dict[str, Any]) -> str:
    with pytest.raises(MalformedEvent) as error:
        declared(models)
    return error.value.message


@pytest.mark.parametrize("profile", ["live", "paper"])
@pytest.mark.parametrize("name", MODELS)
def test_a_decision_says_how_its_model_is_called(profile: str, name: str) -> None:
    one = engine(MODELS, profile=profile)
    route = published(ask(one, "1", allowed_models=[name]))
    said = MODELS[name]
    assert (route.model, route.variant_of, route.params, route.variants) == (
        name,
        said.get("variant_of"),
        said.get("params"),
        None,
    )


def test_models_to_try_next_are_told_as_well_and_a_plain_router_tells_nothing() -> None:
    assert NAMED == FALLBACKS
    one = engine(MODELS)
    for n in range(30):
        route = published(ask(one, str(n)))
        told = {route.model: route, **(route.variants or {})}
        for name in (route.model, *(route.fallbacks or ())):
            said = MODELS[name]
            call = told.get(name)
            assert getattr(call, "params", None) == said.get("params")
            assert getattr(call, "variant_of", None) == said.get("variant_of")
    plain = ask(engine({"a": PRICE, "b": DEAR}), "1")
    assert plain.call is None


def test_a_decision_given_again_is_called_as_it_was_decided() -> None:
    one = engine(MODELS)
    before = ask(one, "1", allowed_models=["gpt-x-high"])
    value = route_value("r", "1", before, repeat=True)
    low = {**MODELS, "gpt-x-high": {**DEAR, "variant_of": "gpt-x", "params": {"effort": "low"}}}
    one.apply(Redeclared(config(low, offset=2)), 1.0)
    one.apply(Charged("1", 0.01), 2.0)
    record = again(one).decide("1", X, now=3.0)
    told = orjson.loads(route_value("r", "1", record, repeat=True))
    assert told["params"] == HIGH == orjson.loads(value)["params"]
    assert published(ask(one, "2", allowed_models=["gpt-x-high"])).params == {"effort": "low"}


def test_a_stopped_router_goes_on_with_its_variants() -> None:
    one = engine(MODELS)
    ask(one, "1")
    other = again(one)
    assert freeze(one) == freeze(other)
    assert published(ask(one, "2")).variants == published(ask(other, "2")).variants


@given(params=st.dictionaries(st.text(), values, max_size=4))
def test_params_are_a_small_json_object_and_stay_what_they_are(params: dict[str, Any]) -> None:
    fits = len(canonical(params).encode()) <= MAX_PARAMS_BYTES and depth(params) <= MAX_PARAMS_DEPTH
    models = {"a": {**PRICE, "params": params}}
    if fits:
        assert declared(models).models["a"].params == params
        assert published(ask(engine(models), "1")).params == params
    else:
        assert "params" in refusal(models)


def depth(value: object) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ([1], "must be an object"),
        ("high", "must be an object"),
        ({"x": "y" * 2048}, "over 2 KiB"),
        ({"é": "é" * 1100}, "over 2 KiB"),
        ({"x": 2**70}, "integers of 64 bits"),
    ],
)
def test_params_that_are_none_are_refused(params: Any, why: str) -> None:
    raw = {"router_id": "r", "models": {"a": {**PRICE, "params": params}}}
    import json

    with pytest.raises(MalformedEvent) as error:
        decode(RouterDeclared, json.dumps(raw).encode())
    assert "params" in error.value.message and why in error.value.message


def test_params_have_few_levels_and_no_number_that_is_none() -> None:
    deep: Any = 1
    for _ in range(MAX_PARAMS_DEPTH):
        deep = [deep]
    assert "levels" in refusal({"a": {**PRICE, "params": {"x": deep}}})
    declared({"a": {**PRICE, "params": {"x": deep[0]}}})
    raw = b'{"router_id":"r","models":{"a":{"input_price_per_m":1,"output_price_per_m":1,'
    with pytest.raises(MalformedEvent, match="not finite"):
        decode(RouterDeclared, raw + b'"params":{"x":NaN}}}}')


def test_a_variant_is_of_another_model_that_is_none_itself() -> None:
    variant = {**PRICE, "variant_of": "a", "params": {"x": 1}}
    assert "variant of itself" in refusal({"a": variant})
    circle = {"a": {**variant, "variant_of": "b"}, "b": variant}
    assert "name the model that both" in refusal(circle)
    chain = {"a": PRICE, "b": variant, "c": {**variant, "variant_of": "b"}}
    assert "name the model that both" in refusal(chain)
    # Its model need not be in the portfolio.
    declared({"b": variant})


def test_two_models_are_never_the_same_call() -> None:
    one = {**PRICE, "variant_of": "m", "params": {"a": 1, "b": [1, 2]}}
    same_call = {"x": one, "y": {**DEAR, "variant_of": "m", "params": {"b": [1, 2], "a": 1}}}
    assert "same call" in refusal(same_call)
    assert "same call" in refusal({"m": PRICE, "x": {**PRICE, "variant_of": "m", "params": {}}})
    declared({"m": PRICE, "x": one, "y": {**one, "params": {"a": 1, "b": [2, 1]}}})
    # Without params each is called by its own name.
    declared({"m": PRICE, "x": {**PRICE, "variant_of": "m"}, "y": {**PRICE, "variant_of": "m"}})
