"""The client's bounds are the schemas', and what it sends the service takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import ground.texts
from paretobandit_client import bounds, checks, text
from paretobandit_client.checked_events import MAX_PROMPT_BYTES, checked
from paretobandit_client.sent_events import Ask, Cost, Needs, Reward, Signals, Verdict, encode
from schemas import (
    CostReported,
    MalformedEvent,
    RequestSubmitted,
    RewardObserved,
    costs,
    decode,
    fields,
    requests,
    rewards,
)
from schemas import capabilities as wire
from schemas.event import Content, Event

PAIRS: dict[Any, type[Event]] = {
    Ask: RequestSubmitted,
    Cost: CostReported,
    Reward: RewardObserved,
}
WIRE: dict[Any, type[Content]] = {Needs: wire.Needs, Signals: requests.Signals}
ASK = Ask(router_id="a", request_id="r", prompt="x")
COST = Cost(router_id="a", request_id="r", cost_usd=0.1)
REWARD = Reward(router_id="a", request_id="r", reward=0.5, source="judge")
VERDICT = Verdict(router_id="a", request_id="r", verifier="tests", verdict=0.5)
OF: dict[str, Any] = {
    **dict.fromkeys(Verdict.__struct_fields__, VERDICT),
    **dict.fromkeys(Reward.__struct_fields__, REWARD),
    **dict.fromkeys(Ask.__struct_fields__, ASK),
    **dict.fromkeys(Cost.__struct_fields__, COST),
    "session_id": ASK,
    "follows": ASK,
    "session_budget_usd": Ask(router_id="a", request_id="r", prompt="x", session_id="s"),
}
"""An event that has each field."""


NOTES = ("description", "title", "default")
"""Keys of a JSON schema that bound nothing."""


def properties() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of every field of the schemas, None left out of its forms."""
    found: dict[str, dict[str, Any]] = {}
    for schema in (*PAIRS.values(), *WIRE.values()):
        for name, field in schema.model_json_schema()["properties"].items():
            forms = [one for one in field.get("anyOf", [field]) if one.get("type") != "null"]
            one = {key: value for key, value in forms[0].items() if key not in NOTES}
            assert found.setdefault(name, one) == one, name
    return found


def test_the_fields_are_those_of_the_schemas() -> None:
    for ours, theirs in (*PAIRS.items(), *WIRE.items()):
        # A reward and a verdict share a topic.
        also = set(Verdict.__struct_fields__) if ours is Reward else set()
        assert set(ours.__struct_fields__) | also == set(theirs.model_fields), (
            f"give {ours.__name__} in paretobandit_client/sent_events.py the fields of the schema"
        )


def test_the_bounds_of_numbers_and_names_are_those_of_the_schemas() -> None:
    numbers, names = {}, {}
    for name, field in properties().items():
        if field.get("type") in ("number", "integer"):
            whole = field["type"] == "integer"
            numbers[name] = bounds.Span(field["maximum"], field["minimum"], whole)
        elif "maxLength" in field:
            assert field["minLength"] == 1
            names[name] = field["maxLength"]
    assert dict(bounds.NUMBERS) == numbers, "NUMBERS in paretobandit_client/bounds.py"
    assert dict(bounds.NAMES) == names, "NAMES in paretobandit_client/bounds.py"


def test_all_other_bounds_are_those_of_the_schemas() -> None:
    found = properties()
    assert found["context"]["maxItems"] == bounds.DIMENSIONS
    assert found["allowed_models"]["maxItems"] == bounds.MODELS
    assert found["allowed_models"]["items"]["maxLength"] == bounds.NAMES["model"]
    assert requests.MAX_PROMPT_BYTES == MAX_PROMPT_BYTES
    assert fields.MAX_METADATA_BYTES == checks.MAX_METADATA_BYTES
    assert rewards.MAX_AHEAD == checks.MAX_AHEAD
    assert set(get_args(costs.Status)) == checks.STATUSES


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.decimals(),
    st.fractions(),
    st.floats(0, 2).map(np.float32),
    st.floats().map(np.float64),
    st.integers(0, 2**40).map(np.int64),
    st.integers(0, 10).map(np.float64),
    st.integers(0, 10).map(Decimal),
    st.booleans().map(np.bool_),
    st.text(),
    st.none().map(lambda _: object()),
    st.just(np.array(3)),
    st.just(np.array([3])),
)
ANY = NUMBERS | st.text(st.characters(codec=None, exclude_categories=()), max_size=210)
FIELDS = sorted({*bounds.NUMBERS, *bounds.NAMES, "status", "prompt", "context"} & set(OF))


@given(name=st.sampled_from(FIELDS), value=ANY)
def test_whatever_is_given_the_caller_is_told_or_the_service_takes_it(
    name: str, value: object
) -> None:
    event = structs.replace(OF[name], **{name: value})
    try:
        sound = checked(event)
    except ValueError as error:
        assert name in str(error)
    else:
        decode(PAIRS[type(event)], encode(sound))


@given(value=st.integers(0, 1000), name=st.sampled_from(sorted(bounds.NUMBERS)))
def test_numbers_of_numpy_and_decimal_are_taken_as_python_s_own(value: int, name: str) -> None:
    span = bounds.NUMBERS[name]
    value = min(value, int(span.high))
    for kind in (int, np.int64, np.float64, np.float32, Decimal, Fraction, np.array):
        found = bounds.number(name, kind(value))
        assert found == value
        assert type(found) is (int if span.whole else float)


@pytest.mark.parametrize("value", [True, np.True_, "4", 0.5, 1e300, None, -1, Decimal("NaN"), []])
@pytest.mark.parametrize("name", sorted(bounds.NUMBERS))
def test_what_is_no_number_of_a_field_is_refused_by_its_name(name: str, value: object) -> None:
    if value == 0.5 and not bounds.NUMBERS[name].whole:
        value = -0.5
    with pytest.raises(ValueError, match=f"^{name} "):
        bounds.number(name, value)


def test_a_whole_float_of_python_s_own_is_no_count() -> None:
    with pytest.raises(ValueError, match=r"input_tokens is a whole number .* not 4\.0"):
        checked(structs.replace(COST, input_tokens=4.0))


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (structs.replace(COST, model="a\nb"), "model"),
        (structs.replace(REWARD, model="a\nb"), "model"),
        (structs.replace(REWARD, source=7), "source"),
        (structs.replace(ASK, request_id="cut \ud83d"), "request_id: .* valid Unicode"),
        (structs.replace(ASK, request_id=7), "request_id"),
        (structs.replace(ASK, allowed_models="small"), "allowed_models"),
        (structs.replace(ASK, allowed_models=["a\nb"]), "allowed_models: .* model"),
        (structs.replace(ASK, needs={"vision": None}), "vision"),
        (structs.replace(ASK, allowed_models=[]), "allowed_models"),
        (structs.replace(ASK, prompt=b"x"), "prompt"),
        (structs.replace(ASK, context="1.0"), "context"),
        (structs.replace(ASK, context=[True, 1.0]), "context"),
        (structs.replace(ASK, context=np.array(1.0)), "context"),
        (structs.replace(ASK, context=np.eye(2)), "context"),
        (structs.replace(ASK, context=[0.5, 0.5]), "context"),
        (structs.replace(ASK, metadata=[1]), "metadata"),
        (structs.replace(ASK, metadata={"x": "y" * 2**16}), "metadata"),
        (structs.replace(ASK, metadata={"x": float("nan")}), "metadata"),
        (structs.replace(ASK, metadata={"x": 2**64}), "metadata"),
        (structs.replace(ASK, metadata={"x": 10**400}), "metadata"),
        (structs.replace(COST, input_tokens=10**400), "input_tokens"),
        (structs.replace(COST, input_tokens=Decimal("1e999999999")), "input_tokens"),
        (structs.replace(COST, cost_usd=Decimal("1e999999999")), "cost_usd"),
        (structs.replace(COST, cost_usd=Fraction(10**400)), "cost_usd"),
        (structs.replace(ASK, needs={"vision": 1}), "vision"),
        (structs.replace(ASK, needs={"output_tokens": 10**10}), "output_tokens"),
        (structs.replace(REWARD, observed_at="now"), "observed_at"),
        (
            structs.replace(REWARD, observed_at=datetime.now(UTC) + timedelta(hours=1)),
            "observed_at",
        ),
        (structs.replace(COST, cached_input_tokens=5, input_tokens=4), "cached_input_tokens"),
    ],
)
def test_what_the_service_refuses_is_refused_by_its_field(event: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        checked(event)


def test_texts_are_mended_and_plain_values_sent() -> None:
    metadata = {"a\ud83d": np.float32(0.5), "b": [Decimal("1.5"), np.int8(3), "\ud83d\ude00", None]}
    event = structs.replace(
        ASK, prompt="cut \ud83d", metadata=metadata, context=None, needs={"vision": np.True_}
    )
    read = decode(RequestSubmitted, encode(checked(event)))
    assert read.prompt == "cut \ufffd"
    assert read.metadata == {"a\ufffd": 0.5, "b": [1.5, 3, "\U0001f600", None]}
    assert checked(structs.replace(ASK, context=np.array([0.5, 1.0], np.float32))).context == (
        0.5,
        1,
    )


def test_an_image_needs_no_prompt() -> None:
    event = checked(structs.replace(ASK, prompt=None, needs={"vision": True}))
    assert decode(RequestSubmitted, encode(event)).prompt is None
    with pytest.raises(ValueError, match="give a prompt"):
        checked(structs.replace(ASK, prompt=None, needs={"tools": True}))


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_client_and_service_mend_texts_alike(given: str) -> None:
    assert text.mended(given) == ground.texts.mended(given)


def test_metadata_that_holds_itself_is_refused() -> None:
    metadata: dict[str, Any] = {}
    metadata["again"] = metadata
    with pytest.raises(ValueError, match="metadata"):
        checked(structs.replace(ASK, metadata=metadata))
    with pytest.raises(MalformedEvent):
        decode(CostReported, b"[]")
