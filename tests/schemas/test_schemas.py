"""Examples, field rules and dead-letter headers of the events on the wire."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

import schemas
from schemas import (
    EVENTS,
    CostReported,
    DeadLetter,
    Event,
    InlinePrior,
    LambdaUpdated,
    LikePrior,
    MalformedEvent,
    Reason,
    ReferencedPrior,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    RouterDeclared,
    based_on,
    decode,
    decode_keyed,
    decode_router,
    encode,
    is_forwarded,
)
from schemas.dlq import HEADERS

REQUEST = {"router_id": "a", "request_id": "r", "prompt": "Hello"}
REWARD = {"router_id": "a", "request_id": "r", "reward": 0.5, "source": "judge"}


def raw(event: Any) -> bytes:
    return json.dumps(event).encode()


EXAMPLES = [
    pytest.param(event, value, id=f"{topic}-{number}")
    for topic, event in EVENTS.items()
    for number, value in enumerate(event.model_json_schema()["examples"])
]
REFUSED = [
    pytest.param(event, refused["value"], refused["reason"], id=f"{topic}-{refused['reason']}")
    for topic, event in EVENTS.items()
    for refused in event.model_json_schema()["x-refused"]
]


@pytest.mark.parametrize(("event", "value"), EXAMPLES)
def test_example_survives_the_round_trip(event: type[Event], value: dict[str, Any]) -> None:
    decoded = decode(event, raw(value))
    assert decode(event, encode(decoded)) == decoded


@pytest.mark.parametrize(("event", "value", "reason"), REFUSED)
def test_refused_example_is_refused_with_its_reason(
    event: type[Event], value: Any, reason: str
) -> None:
    with pytest.raises(MalformedEvent) as refused:
        decode(event, raw(value))
    assert refused.value.reason == reason


@pytest.mark.parametrize(("event", "value"), EXAMPLES)
def test_every_required_field_is_missed(event: type[Event], value: dict[str, Any]) -> None:
    for name in (name for name, field in event.model_fields.items() if field.is_required()):
        with pytest.raises(MalformedEvent) as refused:
            decode(event, raw({field: part for field, part in value.items() if field != name}))
        assert (refused.value.reason, str(refused.value)) == (
            Reason.MISSING_FIELD,
            f"{name} is missing",
        )


@pytest.mark.parametrize(("event", "value"), EXAMPLES)
def test_unknown_fields_are_ignored_and_not_written(
    event: type[Event], value: dict[str, Any]
) -> None:
    decoded = decode(event, raw({**value, "from_the_next_version": {"x": [1]}}))
    assert decoded == decode(event, raw(value))
    assert b"from_the_next_version" not in encode(decoded)


@pytest.mark.parametrize(("event", "value"), EXAMPLES)
def test_optional_fields_may_be_null_and_are_not_written_then(
    event: type[Event], value: dict[str, Any]
) -> None:
    nulls = {
        name: None
        for name, field in event.model_fields.items()
        if name not in value and field.default is None
    }
    decoded = decode(event, raw({**value, **nulls}))
    assert decoded == decode(event, raw(value))
    assert nulls.keys().isdisjoint(json.loads(encode(decoded)))


@pytest.mark.parametrize(("event", "value"), EXAMPLES)
def test_events_are_immutable(event: type[Event], value: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        decode(event, raw(value)).router_id = "b"


def test_every_topic_has_its_schema() -> None:
    modules: list[Any] = [schemas.routers, schemas.requests, schemas.routes, schemas.costs]
    modules += [schemas.rewards, schemas.pools, schemas.leases, schemas.kin, schemas.lambdas]
    modules += [schemas.families, schemas.alerts, schemas.refusals]
    assert [module.TOPIC for module in modules] == list(EVENTS)
    assert {module.KEY for module in modules} == {"router_id", "pool_id", "family"}


def test_required_null_is_written() -> None:
    state = decode(LambdaUpdated, raw(LambdaUpdated.model_json_schema()["examples"][1]))
    assert json.loads(encode(state))["budget_usd_per_request"] is None
    route = decode(RouteDecided, raw(RouteDecided.model_json_schema()["examples"][0]))
    assert json.loads(encode(route))["candidates"][0]["excluded"] is None


def test_integer_is_a_number_but_a_number_is_no_integer() -> None:
    assert (
        decode(CostReported, raw({"router_id": "a", "request_id": "r", "cost_usd": 1})).cost_usd
        == 1.0
    )
    with pytest.raises(MalformedEvent):
        decode(
            CostReported,
            raw({"router_id": "a", "request_id": "r", "input_tokens": 1.0, "output_tokens": 1}),
        )


def test_last_of_repeated_fields_counts() -> None:
    event = decode(CostReported, b'{"router_id":"a","request_id":"r","cost_usd":-1,"cost_usd":2}')
    assert event.cost_usd == 2.0


def test_cost_may_be_zero_and_at_most_1000() -> None:
    for cost in (0, 1000):
        assert (
            decode(
                CostReported, raw({"router_id": "a", "request_id": "r", "cost_usd": cost})
            ).cost_usd
            == cost
        )


def test_prompt_may_speak_of_nan_and_infinity() -> None:
    prompt = 'Is "NaN" equal to -Infinity? {"x": NaN}'
    assert (
        decode(RequestSubmitted, raw({**REQUEST, "prompt": prompt, "x": 10**4299})).prompt == prompt
    )


def test_prompt_of_exactly_1_mib_is_accepted() -> None:
    assert (
        decode(RequestSubmitted, raw({**REQUEST, "prompt": "ä" * 524_288})).prompt == "ä" * 524_288
    )


def test_context_excuses_an_empty_prompt() -> None:
    event = decode(RequestSubmitted, raw({**REQUEST, "prompt": "", "context": [0.5, 1]}))
    assert event.context == (0.5, 1.0)


def test_largest_ids_are_accepted() -> None:
    event = decode(
        RequestSubmitted,
        raw({**REQUEST, "router_id": "A-z_0.9" + "r" * 121, "request_id": "ü 漢" * 32}),
    )
    assert (len(event.router_id), len(event.request_id)) == (128, 96)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-21T09:30:05Z", datetime(2026, 11, 21, 9, 30, 5, tzinfo=UTC)),
        ("2026-11-21t09:30:05.25z", datetime(2026, 11, 21, 9, 30, 5, 250_000, tzinfo=UTC)),
        ("2026-11-21 09:30:05+00:00", datetime(2026, 11, 21, 9, 30, 5, tzinfo=UTC)),
        (
            "2026-11-21T09:30:05.123456789-00:00",
            datetime(2026, 11, 21, 9, 30, 5, 123_456, tzinfo=UTC),
        ),
    ],
)
def test_times_of_rfc_3339_in_utc_are_read(text: str, time: datetime) -> None:
    event = decode(RewardObserved, raw({**REWARD, "observed_at": text}))
    assert event.observed_at == time
    assert event.observed_at is not None and event.observed_at.tzinfo is UTC


def test_code_cannot_make_events_with_times_that_are_not_utc() -> None:
    fields: dict[str, Any] = {"router_id": "a", "request_id": "r", "reward": 0.5, "source": "judge"}
    for zone in (None, timezone(timedelta(hours=2))):
        with pytest.raises(ValidationError):
            RewardObserved(**fields, observed_at=datetime(2026, 11, 21, tzinfo=zone))


def test_router_may_have_no_model_and_free_models() -> None:
    assert decode(RouterDeclared, raw({"router_id": "a", "models": {}})).models == {}
    free = {"m": {"input_price_per_m": 0, "output_price_per_m": 0}}
    assert (
        decode(RouterDeclared, raw({"router_id": "a", "models": free}))
        .models["m"]
        .input_price_per_m
        == 0.0
    )


def test_knobs_that_are_not_given_stay_unsaid() -> None:
    declared = decode(RouterDeclared, raw({"router_id": "a", "models": {}}))
    assert (declared.profile, declared.dimensions, declared.gamma, declared.seed) == (
        "live",
        26,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("prior", "form"),
    [
        ({"A": [[1, 0], [0, 1]], "b": [0.5, 0.5], "n_eff": 3}, InlinePrior),
        ({"ref": "warm-up.npz", "sha256": "0f" * 32}, ReferencedPrior),
        ({"like": "other", "A": None}, LikePrior),
    ],
)
def test_prior_takes_the_form_of_its_field(prior: dict[str, Any], form: type) -> None:
    model = {"input_price_per_m": 1, "output_price_per_m": 2, "prior": prior}
    declared = decode(
        RouterDeclared, raw({"router_id": "a", "models": {"m": model}, "dimensions": 2})
    )
    assert isinstance(declared.models["m"].prior, form)
    assert decode(RouterDeclared, encode(declared)) == declared


def test_event_without_a_key_is_read() -> None:
    assert decode_keyed(RequestSubmitted, key=None, value=raw(REQUEST)).request_id == "r"


def test_null_declaration_says_that_the_router_is_gone() -> None:
    assert decode_router(key=b"acme.chat", value=None) == ("acme.chat", None)


def test_declaration_without_a_key_is_refused() -> None:
    for value in (None, raw({"router_id": "a", "models": {}})):
        with pytest.raises(MalformedEvent) as refused:
            decode_router(key=None, value=value)
        assert refused.value.reason is Reason.WRONG_KEY


def test_condition_of_a_declaration_is_read() -> None:
    assert based_on([("other", b"x"), ("pb.based_on", b"1042")]) == 1042
    assert based_on([("pb.based_on", b"-1")]) == -1
    assert based_on([]) is None


@pytest.mark.parametrize(
    "value", [None, b"", b"-2", b"1.5", b"\xff", b"9" * 17, b"9" * 5000, "²".encode()]
)
def test_condition_that_is_no_offset_is_refused(value: bytes | None) -> None:
    with pytest.raises(MalformedEvent) as refused:
        based_on([("pb.based_on", value)])
    assert refused.value.reason is Reason.MALFORMED_EVENT


def test_forwarded_events_are_known_by_their_header() -> None:
    assert is_forwarded([("pb.forwarded", b"")])
    assert not is_forwarded([("pb.based_on", b"1")])


def test_dead_letter_survives_its_headers() -> None:
    letter = DeadLetter.of(
        MalformedEvent(Reason.WRONG_CONTEXT, "context: too_long"),
        topic="pb.requests",
        partition=3,
        offset=9,
        stage="decode",
    )
    assert letter.headers() == [
        ("__connect.errors.topic", b"pb.requests"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"9"),
        ("__connect.errors.stage", b"decode"),
        ("__connect.errors.exception.class.name", b"schemas.event.MalformedEvent"),
        ("__connect.errors.exception.message", b"context: too_long"),
        ("pb.reason", b"wrong_context"),
    ]
    assert DeadLetter.from_headers([("source", b"\xff"), *letter.headers()]) == letter


def test_dead_letter_of_an_unforeseen_error_keeps_its_text_to_itself() -> None:
    letter = DeadLetter.of(
        KeyError("a secret prompt"), topic="pb.requests", partition=0, offset=0, stage="decode"
    )
    assert (letter.reason, letter.exception_class, letter.message) == (
        "internal_error",
        "builtins.KeyError",
        "",
    )


@pytest.mark.parametrize("name", HEADERS)
def test_dead_letter_without_a_header_is_refused(name: str) -> None:
    letter = DeadLetter.of(ValueError(), topic="pb.costs", partition=0, offset=0, stage="decode")
    with pytest.raises(MalformedEvent, match=name):
        DeadLetter.from_headers([header for header in letter.headers() if header[0] != name])


@pytest.mark.parametrize(
    "header", [("__connect.errors.offset", b"x"), ("pb.reason", b"\xff"), ("pb.reason", None)]
)
def test_dead_letter_with_an_unreadable_header_is_refused(header: Any) -> None:
    letter = DeadLetter.of(ValueError(), topic="pb.costs", partition=0, offset=0, stage="decode")
    with pytest.raises(MalformedEvent, match="unreadable"):
        DeadLetter.from_headers([*letter.headers(), header])


def test_reasons_are_snake_case_and_explained() -> None:
    for reason in Reason:
        assert reason.replace("_", "").isalpha() and reason == reason.lower()
        assert reason.meaning.endswith(".")
