"""What models offer and requests need: who is ruled out, and what is said if nobody is left."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from agents.declaring.configuration import config_of, declaration_of
from benchmarks.played import Played
from router_state.errors import NoAllowedModel, NoCapableModel
from router_state.events import Needs
from router_state.needs.offers import Offers, lacking, rule_out
from router_state.state.config_bytes import config_body, config_from
from schemas.event import MalformedEvent, decode
from schemas.reasons import Reason
from schemas.requests import RequestSubmitted
from schemas.routers import RouterDeclared
from tests.router_state.core_reference import context, declaration, freeze

SEES = Offers(context_window=1000, vision=True)
CALLS = Offers(context_window=8000, max_output_tokens=500, tools=True, regions=("eu", "us"))
X = context(1.0, 0.0, 0.0)
tokens = st.none() | st.integers(0, 10_000)
offered = st.builds(
    Offers,
    context_window=st.none() | st.integers(1, 9000),
    max_output_tokens=st.none() | st.integers(1, 9000),
    vision=st.booleans(),
    audio=st.booleans(),
    tools=st.booleans(),
    json_output=st.booleans(),
    regions=st.sets(st.sampled_from(["eu", "us"])).map(tuple),
    retention_days=st.none() | st.sampled_from([0.0, 30.0]),
)
needed = st.builds(
    Needs,
    vision=st.booleans(),
    audio=st.booleans(),
    tools=st.booleans(),
    json_output=st.booleans(),
    output_tokens=tokens,
    region=st.none() | st.sampled_from(["eu", "asia"]),
    max_retention_days=st.none() | st.sampled_from([0.0, 7.0]),
)


def engine(profile: str = "live", **offers: Offers) -> Played:
    """Return an engine for three models that offer this."""
    return Played.start(declaration(profile=profile, offers=offers))


def reasons(decided: Any) -> dict[str, str | None]:
    """Return why each model was ruled out."""
    seen = decided.candidates
    return dict(zip(seen.models, seen.excluded, strict=True))


@pytest.mark.parametrize("profile", ["live", "paper"])
def test_only_models_that_offer_what_is_needed_may_be_called(profile: str) -> None:
    router = engine(profile, cheap=SEES, middle=CALLS)
    decided = router.decide(
        "1", X, now=0.0, needs=Needs(tools=True), allowed_models=["cheap", "middle"]
    )
    assert decided.model == "middle"
    assert reasons(decided) == {"cheap": "no_tools", "middle": None, "dear": "not_allowed"}


def test_sound_goes_to_models_that_hear_where_one_is_known() -> None:
    hears = Offers(audio=True)
    known, unknown = engine(cheap=SEES, middle=hears), engine(cheap=SEES, middle=CALLS)
    excluded = reasons(known.decide("1", X, now=0.0, needs=Needs(audio=True)))
    assert excluded == {"cheap": "no_audio", "middle": None, "dear": None}
    excluded = reasons(unknown.decide("1", X, now=0.0, needs=Needs(audio=True)))
    assert set(excluded.values()) == {None}


def test_a_model_that_declares_nothing_can_do_all() -> None:
    router = engine(cheap=SEES, middle=SEES)
    everything = Needs(
        vision=True,
        tools=True,
        json_output=True,
        output_tokens=10**9,
        region="mars",
        max_retention_days=0.0,
    )
    assert router.decide("1", X, now=0.0, needs=everything, input_tokens=10**9).model == "dear"


def test_input_tokens_beyond_a_window_rule_out_without_any_need() -> None:
    router = engine(cheap=SEES, middle=CALLS)
    assert reasons(router.decide("1", X, now=0.0, input_tokens=1000))["cheap"] is None
    assert reasons(router.decide("2", X, now=0.0, input_tokens=1001))["cheap"] == "window_too_small"
    assert reasons(router.decide("3", X, now=0.0))["cheap"] is None


@pytest.mark.parametrize(
    ("needs", "input_tokens", "named"),
    [
        (Needs(json_output=True), None, "json_output"),
        (Needs(region="mars"), None, "region mars"),
        (Needs(max_retention_days=7.0), None, "retention of at most 7 days"),
        (Needs(vision=True, tools=True), None, "all of tools, vision together"),
        (None, 9000, "a context window of 9,000 tokens"),
        (
            Needs(vision=True, tools=True, json_output=True),
            None,
            "json_output nor all of tools, vision together",
        ),
        (Needs(json_output=True, region="mars"), None, "json_output nor region mars"),
        (
            Needs(output_tokens=600, tools=True),
            10,
            "all of tools, an answer of 600 tokens together",
        ),
    ],
)
def test_the_refusal_names_the_need_and_leaves_no_trace(
    needs: Needs | None, input_tokens: int | None, named: str
) -> None:
    router = engine(cheap=SEES, middle=CALLS, dear=SEES)
    before = freeze(router)
    with pytest.raises(NoCapableModel, match=named):
        router.decide("1", X, now=0.0, needs=needs, input_tokens=input_tokens)
    assert freeze(router) == before


def test_what_was_ruled_out_before_is_not_what_lacks_something() -> None:
    router = engine(cheap=SEES, middle=CALLS)
    with pytest.raises(NoAllowedModel):
        router.decide("1", X, now=0.0, needs=Needs(vision=True), allowed_models=["none"])
    with pytest.raises(NoCapableModel):
        router.decide("1", X, now=0.0, needs=Needs(vision=True), allowed_models=["middle"])


def test_the_price_of_a_dollar_is_solved_over_what_requests_could_be_given_to() -> None:
    router = engine(cheap=SEES, middle=CALLS)
    for n in range(3):
        router.decide(str(n), X, now=0.0, needs=Needs(tools=True))
    router.decide("3", X, now=0.0)
    assert router.state.arms.window is not None
    limited = router.state.arms.window.limited
    assert limited == dict.fromkeys(range(3), frozenset({"middle", "dear"}))


@given(offers=offered, needs=needed, input_tokens=tokens)
def test_a_model_lacks_nothing_or_is_ruled_out(
    offers: Offers, needs: Needs, input_tokens: int | None
) -> None:
    lacks = lacking(offers, needs, input_tokens)
    known = {"a": offers, "c": Offers(audio=True)}  # of "c" it is known that it hears sound
    found = rule_out(["a", "b", "c"], [None] * 3, known, needs, input_tokens)
    assert found[:2] == [next(iter(lacks), None), None]
    # What it offers less it can't lack less.
    assert lacks.keys() <= lacking(Offers(context_window=1), needs, input_tokens or 2).keys() | {
        "output_too_short"
    }


@given(offers=st.dictionaries(st.sampled_from(["cheap", "middle", "gone"]), offered))
def test_a_configuration_keeps_what_models_offer(offers: dict[str, Offers]) -> None:
    config = declaration(offers=offers)
    assert config_from(config_body(config)).capabilities.get("offers", {}) == offers
    assert (b"offers" in config_body(config)) is bool(offers)


def test_a_declaration_says_it_and_is_said_again() -> None:
    model = {"input_price_per_m": 1.0, "output_price_per_m": 2.0}
    offers = {"context_window": 1000, "vision": True, "regions": ["eu"]}
    body = {"router_id": "r", "models": {"m": {**model, "offers": offers}}}
    declared = RouterDeclared.model_validate_json(json.dumps(body))
    config = config_of(declared, offset=1, references={})
    wanted = Offers(context_window=1000, vision=True, regions=("eu",))
    assert config.capabilities["offers"] == {"m": wanted}
    models: Any = declaration_of(config, "r")["models"]
    assert models["m"]["offers"] == {**offers, "regions": ("eu",)}


@pytest.mark.parametrize(
    "needs",
    ['{"vision":1}', '{"output_tokens":-1}', '{"region":""}', '{"max_retention_days":-1}', "[]"],
)
def test_a_need_that_is_none_is_refused(needs: str) -> None:
    raw = '{"router_id":"r","request_id":"1","prompt":"p","needs":' + needs + "}"
    with pytest.raises(MalformedEvent) as refused:
        decode(RequestSubmitted, raw.encode())
    assert refused.value.reason is Reason.INVALID_FIELD


def test_needs_of_the_wire_and_of_the_core_have_the_same_fields() -> None:
    from schemas import capabilities

    for wire, core in ((capabilities.Needs, Needs), (capabilities.Offers, Offers)):
        assert list(wire.model_fields) == [field.name for field in structs.fields(core)]
