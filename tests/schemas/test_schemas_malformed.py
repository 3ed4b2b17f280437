"""What must be refused is refused, with its reason, and without quoting the event."""

import json
import re
from typing import get_args

import pytest
from pydantic import ValidationError
from pydantic_core import core_schema

from schemas import (
    EVENTS,
    Event,
    MalformedEvent,
    Reason,
    Value,
    decode,
    decode_keyed,
    decode_router,
)
from schemas.requests import RequestSubmitted
from schemas.routers import RouterDeclared
from tests.malformed import Malformed, for_the_worker, malformed

SECRET = "hunter2-planted"


def read(record: Malformed) -> None:
    if record.topic == "routers":
        decode_router(key=record.key, value=record.value)
    else:
        decode_keyed(EVENTS[record.topic], key=record.key, value=record.value)


@pytest.mark.parametrize("record", malformed(), ids=lambda record: f"{record.topic}-{record.name}")
def test_malformed_record_is_refused_with_its_reason(record: Malformed) -> None:
    with pytest.raises(MalformedEvent) as refused:
        read(record)
    assert refused.value.reason is record.reason
    assert not refused.value.retriable


EXAMPLES: list[tuple[type[Value], bytes | None]] = [
    *((EVENTS[record.topic], record.value) for record in malformed() if record.topic != "routers"),
    *((RouterDeclared, record.value) for record in malformed() if record.topic == "routers"),
    *(
        (event, json.dumps(refused["value"]).encode())
        for event in EVENTS.values()
        for refused in event.model_json_schema()["x-refused"]
    ),
]
CODES = {code for code in get_args(core_schema.ErrorType) if "_" in code}


def test_no_message_holds_a_code_of_pydantic() -> None:
    said = set()
    for event, value in EXAMPLES:
        try:
            decode(event, value)
        except MalformedEvent as refused:
            said.add(str(refused))
    assert len(said) > 60
    assert [text for text in said for code in CODES if code in text] == []
    # A name of the field, or of what is meant, and then a verb.
    assert [one for one in said if not re.search(r" (is|are|has|must|holds|does) ", one)] == []


@pytest.mark.parametrize(
    ("event", "field", "value", "said"),
    [
        (EVENTS["rewards"], "reward", 1.4, "reward is 1.4; it must be between 0 and 1"),
        (EVENTS["rewards"], "reward", "0.9", "reward is a text; it must be a number"),
        (EVENTS["rewards"], "reward", True, "reward is true or false; it must be a number"),
        (EVENTS["rewards"], "source", "", "source must have at least 1 character"),
        (
            EVENTS["rewards"],
            "revision",
            0.5,
            "revision is a number with a decimal point; it must be a whole number",
        ),
        (EVENTS["costs"], "cost_usd", -1, "cost_usd is -1; it must be between 0 and 1,000"),
        (
            EVENTS["costs"],
            "input_tokens",
            10**400,
            "input_tokens must be between 0 and 1,000,000,000",
        ),
        (RouterDeclared, "gamma", 0, "gamma is 0; it must be above 0 and at most 1"),
        (RouterDeclared, "profile", "fast", "profile must be 'live' or 'paper'"),
        (RouterDeclared, "min_reward", 2, "min_reward is 2; it must be between 0 and 1"),
        (
            RouterDeclared,
            "models",
            {"": {"input_price_per_m": 1.0, "output_price_per_m": 2.0}},
            "a name in models must have at least 1 character",
        ),
    ],
)
def test_message_has_the_number_and_both_of_its_bounds(
    event: type[Event], field: str, value: object, said: str
) -> None:
    whole = event.model_json_schema()["examples"][0]
    with pytest.raises(MalformedEvent) as refused:
        decode(event, json.dumps({**whole, field: value}).encode())
    assert str(refused.value) == said


@pytest.mark.parametrize("record", for_the_worker(), ids=lambda record: record.name)
def test_schema_lets_through_what_only_a_worker_can_judge(record: Malformed) -> None:
    read(record)


def test_names_of_the_shared_records_are_unique() -> None:
    names = [record.name for record in malformed() + for_the_worker()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "event",
    [
        {"router_id": SECRET + "!", "request_id": "r", "prompt": SECRET},
        {"router_id": "a", "request_id": SECRET + "\n", "prompt": SECRET},
        {"router_id": "a", "request_id": "r", "prompt": [SECRET]},
        {"router_id": "a", "request_id": "r", "context": [SECRET]},
        {"router_id": "a", "request_id": "r", "context": [0.25, 0.1234567]},
        {"router_id": "a", "request_id": "r", "prompt": "x", "allowed_models": [{SECRET: 1}]},
        {"router_id": "a", "request_id": "r", "prompt": "x", "metadata": {SECRET: "x" * 70_000}},
        {"router_id": "a", "request_id": "r", "prompt": "x", "metadata": {SECRET: 2**70}},
        {"router_id": "a", "request_id": "r", "prompt": "x", "metadata": SECRET},
    ],
)
def test_message_quotes_no_value_of_a_request(event: dict[str, object]) -> None:
    with pytest.raises(MalformedEvent) as refused:
        decode(RequestSubmitted, json.dumps(event).encode())
    assert SECRET not in str(refused.value)
    assert "0.1234567" not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


@pytest.mark.parametrize(
    "models", [{SECRET: 1}, {SECRET + "\n": {}}, {SECRET: {"prior": {SECRET: 1}}}]
)
def test_message_quotes_no_name_that_a_client_chose(models: dict[str, object]) -> None:
    with pytest.raises(MalformedEvent) as refused:
        decode(RouterDeclared, json.dumps({"router_id": "a", "models": models}).encode())
    assert SECRET not in str(refused.value)
    assert re.match(r"models\.\*|a name in models ", str(refused.value))


def test_message_says_what_is_wrong_and_what_is_right() -> None:
    with pytest.raises(MalformedEvent, match=r"^context\.1 is a text; it must be a number$"):
        decode(RequestSubmitted, b'{"router_id":"a","request_id":"r","context":[1,"x"]}')


def test_broken_json_is_not_quoted() -> None:
    with pytest.raises(MalformedEvent) as refused:
        decode(RequestSubmitted, f'{{"prompt": "{SECRET}" {SECRET}'.encode())
    assert refused.value.reason is Reason.MALFORMED_JSON
    assert str(refused.value) == "the value is not JSON in strict UTF-8"


@pytest.mark.parametrize(
    ("field", "many"),
    [
        ("context", b'"a"'),
        ("context", b"[]"),
        ("allowed_models", b"7"),
        ("allowed_models", b'"\\n"'),
    ],
)
def test_list_of_many_errors_is_left_at_the_first(field: str, many: bytes) -> None:
    raw = (
        b'{"router_id":"a","request_id":"r","prompt":"x","%b":[' % field.encode()
        + b",".join([many] * 100_000)
        + b"]}"
    )
    with pytest.raises(ValidationError) as refused:
        RequestSubmitted.model_validate_json(raw)
    assert refused.value.error_count() <= 2  # the first element, and the length that is left


def test_portfolio_of_many_errors_is_left_at_the_first() -> None:
    models = {f"m{i}": i for i in range(10_000)}
    with pytest.raises(ValidationError) as refused:
        RouterDeclared.model_validate_json(json.dumps({"router_id": "a", "models": models}))
    assert refused.value.error_count() == 1
