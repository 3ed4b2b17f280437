"""What exporters really write, item by item: the good ones are booked, the odd ones named."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from commands.cli import main
from doors.integrations.convert import Converted, convert, finder_of
from doors.integrations.payload_items import Defaults, Unconvertible, rfc3339
from doors.integrations.remembered import Remembered
from paretobandit_client.sent_events import Step
from schemas import MalformedEvent
from tests.client.test_attempts import Sent, decision
from tests.doors.integrations.exporters import (
    CALL,
    FAILED,
    LOGGED,
    SCORE,
    evaluated,
    exported,
    logged,
    span,
)


def of(form: str, payload: Any, **more: Any) -> Converted:
    """Convert a payload, which is bytes or is written as JSON."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return convert(raw, finder_of(form, Defaults("chat")), **more)


def bills(found: Converted) -> list[dict[str, Any]]:
    """Return the fields of what was taken."""
    return [one.event.model_dump(exclude_none=True) for one in found.taken]


def snake(value: Any) -> Any:
    """Spell the names of fields as protobuf's source does."""
    if isinstance(value, dict):
        return {
            re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", k): snake(v) for k, v in value.items()
        }
    return [snake(one) for one in value] if isinstance(value, list) else value


def without(payload: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in names}


ODD_SPANS = [
    span(without(CALL, "pb.request_id")),
    span(without(CALL, "gen_ai.usage.output_tokens")),
    span({**CALL, "gen_ai.usage.input_tokens": {"doubleValue": None}}),
    span({**CALL, "gen_ai.usage.input_tokens": {"doubleValue": "NaN"}}),
    span({**CALL, "gen_ai.usage.input_tokens": -1}),
    span({**CALL, "pb.request_id": "cut \ud83d"}),
    span({**CALL, "pb.router_id": "a b"}),
    {**span(CALL), "attributes": {"gen_ai.usage.input_tokens": 3}},
    {"traceID": "x", "tags": []},
    None,
    7,
]
ODD_LOGS = [
    {**LOGGED, "metadata": {}, "id": None},
    {**LOGGED, "response_cost": -0.29},
    {**LOGGED, "response_cost": float("nan")},
    {**LOGGED, "response_cost": float("-inf")},
    {**LOGGED, "response_cost": 2000.0},
    {**LOGGED, "response_cost": True},
    {**LOGGED, "response_cost": None, "prompt_tokens": 0, "completion_tokens": 0},
    {**LOGGED, "metadata": {"requester_metadata": {"pb_request_id": "\ud83d"}}},
    {"requestId": "of another gateway", "cost": 0.1},
    None,
    "x",
]
ODD_SCORES = [
    {**SCORE, "dataType": "CATEGORICAL", "value": "good"},
    {**SCORE, "dataType": "TEXT", "value": "good"},
    {**SCORE, "value": None},
    {**SCORE, "value": 4},
    {**SCORE, "value": float("nan")},
    without(SCORE, "traceId"),
    {**without(SCORE, "traceId"), "datasetRunId": "d"},
    None,
]
EVENT = {"specversion": "1.0", "type": "x.costs.v1", "subject": "r", "data": {"cost_usd": 0.5}}
ODD_EVENTS = [
    {**EVENT, "specversion": "0.3"},
    {**EVENT, "data": [1]},
    {**EVENT, "data": "not JSON"},
    {**EVENT, "data": {"cost_usd": -1}},
    without(EVENT, "subject"),
    None,
]
BATCHES: dict[str, tuple[Any, list[Any], Any]] = {
    "otel": (span(CALL), ODD_SPANS, lambda items: exported(*items)),
    "litellm": (LOGGED, ODD_LOGS, list),
    "langfuse": (SCORE, ODD_SCORES, lambda items: {"data": items}),
    "cloudevents": (EVENT, ODD_EVENTS, list),
}
"""Of each form a good item, odd ones, and how items become a payload."""


@pytest.mark.parametrize("form", BATCHES)
@given(data=st.data())
def test_of_any_batch_the_good_items_are_booked_and_the_odd_ones_named(
    form: str, data: st.DataObject
) -> None:
    good, odd, batch = BATCHES[form]
    places = data.draw(st.lists(st.sampled_from([None, *range(len(odd))]), min_size=1, max_size=6))
    items = [copy.deepcopy(good if place is None else odd[place]) for place in places]
    found = of(form, batch(items))
    right = [index for index, place in enumerate(places) if place is None]
    wrong = [index for index, place in enumerate(places) if place is not None]
    assert [one.index for one in found.taken] == right
    assert [one.index for one in found.refused] == wrong
    assert all(one.error.reason and str(one.error) for one in found.refused)
    if wrong:
        # The letter holds the refused items alone, and is a payload of the same form.
        assert_refused_again(form, found)


def assert_refused_again(form: str, found: Converted) -> None:
    try:
        again = of(form, found.letter)
    except MalformedEvent:
        return
    assert not again.taken
    assert {str(one.error) for one in again.refused} == {str(one.error) for one in found.refused}


def test_a_line_that_is_no_json_leaves_the_others_booked() -> None:
    lines = [json.dumps(LOGGED), "{cut", json.dumps({**LOGGED, "id": "2"})]
    found = of("litellm", "\r\n".join(lines).encode())
    assert [one.index for one in found.taken] == [0, 2]
    assert (found.refused[0].index, found.letter) == (1, b"{cut")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("between", ["", "\n", " "])
def test_objects_that_follow_each_other_are_read(indent: int | None, between: str) -> None:
    two = (json.dumps({**LOGGED, "id": name}, indent=indent) for name in "ab")
    assert len(of("litellm", between.join(two).encode()).taken) == 2


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_that_was_cut_off_is_no_list_of_lines(indent: int | None) -> None:
    whole = json.dumps([LOGGED, {}], indent=indent).encode()
    for cut in (whole[:-1], whole[: len(whole) // 2], b"", b"7 8"):
        with pytest.raises(MalformedEvent):
            of("litellm", cut)


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(exported(span({**CALL, "gen_ai.input.messages": "cut \ud83d"}))).encode(),
        b"\xef\xbb\xbf" + json.dumps(exported(span(CALL))).encode(),
        json.dumps(exported(span({**CALL, "x": "café"})), ensure_ascii=False).encode("latin-1"),
        json.dumps(exported(span({**CALL, "x": {"doubleValue": float("-inf")}}))).encode(),
        json.dumps(exported(span({**CALL, "x": {"intValue": 2**70}}))).encode(),
    ],
    ids=["half an emoji", "byte order mark", "latin-1", "infinity", "70 bits"],
)
def test_what_strict_json_refuses_beside_the_money_is_read(raw: bytes) -> None:
    assert [one["request_id"] for one in bills(of("otel", raw))] == ["r"]


ENVELOPES = {
    "export": exported,
    "resource": lambda one: exported(one)["resourceSpans"][0],
    "scope": lambda one: exported(one)["resourceSpans"][0]["scopeSpans"][0],
    "span": lambda one: one,
    "older scope": lambda one: {
        "resourceSpans": [{"instrumentationLibrarySpans": [{"spans": [one]}]}]
    },
}


@pytest.mark.parametrize("spelled", [lambda one: one, snake], ids=["camelCase", "snake_case"])
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_otlp_is_read_in_both_spellings_and_from_any_level_a_line_each(
    envelope: str, spelled: Any
) -> None:
    one, two = (ENVELOPES[envelope](span({**CALL, "pb.request_id": name})) for name in "ab")
    lines = "\n".join(json.dumps(spelled(line)) for line in (one, two))
    assert [bill["request_id"] for bill in bills(of("otel", lines.encode()))] == ["a", "b"]


@pytest.mark.parametrize(
    ("attributes", "cached"),
    [
        ({"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 5}, None),
        (
            {
                "llm.request.type": "chat",
                "llm.usage.prompt_tokens": 10,
                "llm.usage.completion_tokens": 5,
                "gen_ai.usage.cache_read_input_tokens": 4,
            },
            4,
        ),
        (
            {
                "openinference.span.kind": "LLM",
                "llm.token_count.prompt": 10,
                "llm.token_count.completion": 5,
                "llm.token_count.prompt_details.cache_read": 4,
            },
            4,
        ),
        ({**CALL, "gen_ai.usage.details.cache_read_tokens": 4}, 4),
        ({**CALL, "gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": 5.0}, None),
    ],
    ids=["before 1.27", "OpenLLMetry", "OpenInference", "Pydantic AI", "text and double"],
)
def test_usage_is_read_by_the_older_names(attributes: dict[str, Any], cached: int | None) -> None:
    (bill,) = bills(of("otel", exported(span({"pb.request_id": "r", **attributes}))))
    assert (bill["input_tokens"], bill["output_tokens"]) == (10, 5)
    assert bill.get("cached_input_tokens") == cached


AMOUNT, CURRENCY = "gen_ai.usage.cost.amount", "gen_ai.usage.cost.currency"
TOKENLESS = without(CALL, "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")


@pytest.mark.parametrize("amount", [0.004, "0.004"])
@pytest.mark.parametrize("currency", ["USD", "usd"])
@pytest.mark.parametrize("call", [CALL, TOKENLESS])
def test_dollars_of_a_span_are_its_bill(call: dict[str, Any], amount: Any, currency: str) -> None:
    (bill,) = bills(of("otel", exported(span({**call, AMOUNT: amount, CURRENCY: currency}))))
    assert bill["cost_usd"] == 0.004
    assert bill.get("input_tokens") == call.get("gen_ai.usage.input_tokens")


def test_a_call_that_failed_may_cost_dollars_alone() -> None:
    failed = {**TOKENLESS, "error.type": "timeout", AMOUNT: 0.0, CURRENCY: "USD"}
    (bill,) = bills(of("otel", exported(span(failed))))
    assert (bill["cost_usd"], bill["status"]) == (0.0, "timeout")


def test_an_amount_in_no_currency_gives_way_to_tokens() -> None:
    (bill,) = bills(of("otel", exported(span({**CALL, AMOUNT: 4.0}))))
    assert "cost_usd" not in bill and bill["input_tokens"] == CALL["gen_ai.usage.input_tokens"]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({**CALL, AMOUNT: 4.0, CURRENCY: "EUR"}, "EUR"),
        ({**TOKENLESS, AMOUNT: 4.0}, "missing"),
        ({**CALL, AMOUNT: "four", CURRENCY: "USD"}, "not a number"),
        ({**CALL, AMOUNT: -1.0, CURRENCY: "USD"}, "cost_usd"),
    ],
)
def test_a_bill_that_is_not_in_dollars_is_refused(attributes: dict[str, Any], said: str) -> None:
    found = of("otel", exported(span(attributes), span({**CALL, "pb.request_id": "beside"})))
    assert len(found.taken) == 1
    assert said in str(found.refused[0].error)


def test_a_span_with_the_attributes_of_its_decision_bills_its_request() -> None:
    made = decision(Sent(), Step(model="small"))
    usage = {name: CALL[name] for name in CALL if name.startswith("gen_ai.usage")}
    (bill,) = bills(of("otel", exported(span({**made.span_attributes(), **usage}))))
    assert (bill["router_id"], bill["request_id"], bill["model"]) == ("r", "q", "small")


@pytest.mark.parametrize("kind", ["CHAIN", "AGENT", "EMBEDDING", "TOOL"])
def test_what_repeats_the_tokens_of_calls_makes_no_bill(kind: str) -> None:
    tokens = {"llm.token_count.prompt": 10, "llm.token_count.completion": 5}
    outer = span({"openinference.span.kind": kind, "pb.request_id": "r", **tokens})
    assert len(of("otel", exported(outer, span(CALL))).taken) == 1


@pytest.mark.parametrize("form", BATCHES)
@pytest.mark.parametrize("payload", [{}, {"object": "chat.completion", "usage": {}}, {"a": 1}])
def test_a_door_says_that_a_payload_is_of_another_form(form: str, payload: Any) -> None:
    found = of(form, payload)
    assert not found.taken and "this is not" in str(found.refused[0].error)


def test_a_call_without_usage_is_nothing_read_unless_another_one_has_some() -> None:
    silent = span({"gen_ai.operation.name": "chat", "pb.request_id": "r"})
    assert "input_tokens" in str(of("otel", exported(silent)).refused[0].error)
    beside = of("otel", exported(silent, span(CALL)))
    assert (len(beside.taken), beside.refused, beside.passed_over) == (1, [], 1)


@pytest.mark.parametrize("payload", [{"resourceSpans": []}, exported(span({"http.x": 1}))])
def test_an_export_without_calls_is_no_fault(payload: Any) -> None:
    found = of("otel", payload)
    assert (found.taken, found.refused) == ([], [])


@pytest.mark.parametrize(
    ("form", "payload", "field"),
    [
        ("otel", span({**CALL, "gen_ai.usage.cache_read.input_tokens": 5758}), "cached"),
        ("otel", span(CALL, endTimeUnixNano="1795380000000000000"), "latency_ms"),
        ("otel", span(CALL, endTimeUnixNano="1795253300000000000"), "latency_ms"),
        ("otel", span(CALL, startTimeUnixNano="soon"), "latency_ms"),
        ("otel", span({**CALL, "gen_ai.response.time_to_first_chunk": "x"}), "first_token_ms"),
        ("litellm", {**LOGGED, "endTime": 1795453400.9}, "latency_ms"),
        ("litellm", {**LOGGED, "endTime": "soon"}, "latency_ms"),
        (
            "litellm",
            LOGGED
            | {
                "metadata": {
                    **LOGGED["metadata"],
                    "usage_object": {"prompt_tokens_details": {"cached_tokens": 99}},
                }
            },
            "cached",
        ),
        ("cloudevents", {**EVENT, "data": {"cost_usd": 0.5, "latency_ms": -1}}, "latency_ms"),
    ],
)
def test_a_number_beside_the_money_is_left_out_and_the_money_booked(
    form: str, payload: dict[str, Any], field: str
) -> None:
    found = of(form, payload)
    (bill,) = bills(found)
    assert not any(name.startswith(field) for name in bill)
    assert len(found.warnings) == 1 and field in found.warnings[0]


def test_a_model_that_is_back_in_35_hours_is_left_alone_for_as_long_as_can_be_said() -> None:
    headers = {"http.response.header.retry-after": "124633", "error.type": "429"}
    found = of("otel", exported(span({**CALL, **headers})))
    assert bills(found)[0]["retry_after_seconds"] == 86_400.0
    assert "cut" in found.warnings[0]


def test_attempts_of_a_request_add_up_and_one_that_is_sent_again_counts_once() -> None:
    for order in ([FAILED, LOGGED], [LOGGED, FAILED], [FAILED, LOGGED, FAILED, LOGGED, LOGGED]):
        last = max(bills(of("litellm", order)), key=lambda bill: int(bill["revision"]))
        assert last["cost_usd"] == pytest.approx(0.014)


def test_calls_of_a_plan_have_bills_of_their_own_and_the_tries_of_each_add_up() -> None:
    def call(number: int, one: dict[str, Any]) -> dict[str, Any]:
        metadata = {"requester_metadata": {"pb_request_id": "r", "pb_attempt": number}}
        return {**one, "metadata": metadata, "litellm_call_id": f"{number}"}

    found = bills(of("litellm", [call(0, LOGGED), call(1, FAILED), call(1, LOGGED)]))
    last = {bill["attempt"]: bill["cost_usd"] for bill in found}
    assert last == pytest.approx({0: LOGGED["response_cost"], 1: 0.014})
    refused = of("litellm", call(99, LOGGED))
    assert not refused.taken and "attempt" in str(refused.refused[0])


def test_a_failure_of_which_nothing_is_known_says_how_it_failed() -> None:
    unknown = {**FAILED, "response_cost": None, "prompt_tokens": 0, "completion_tokens": 0}
    (bill,) = bills(of("litellm", unknown))
    assert (bill["status"], bill["cost_usd"]) == ("error", 0.0)


@pytest.mark.parametrize("ids", [("a", "b"), ("", "")])
def test_spans_of_attempts_add_up_with_and_without_ids(ids: tuple[str, str]) -> None:
    failed = {**CALL, "error.type": "500", "gen_ai.usage.output_tokens": 0}
    spans = [span(failed, spanId=ids[0]), span(CALL, spanId=ids[1])]
    last = bills(of("otel", exported(*spans, *spans)))[-1]
    assert (last["input_tokens"], last["output_tokens"], last["revision"]) == (20, 5, 1)


def test_attempts_add_up_over_payloads_and_in_tokens() -> None:
    known = Remembered()
    failed = {**CALL, "error.type": "500", "gen_ai.usage.output_tokens": 0}
    of("otel", exported(span(failed, spanId="a")), remembered=known)
    for _ in range(2):
        (bill,) = bills(of("otel", exported(span(CALL, spanId="b")), remembered=known))
        assert (bill["input_tokens"], bill["output_tokens"], bill["revision"]) == (20, 5, 1)


def test_a_failure_that_was_free_leaves_a_bill_in_tokens_as_it_is() -> None:
    unpriced = {**LOGGED, "response_cost": None}
    free = {**FAILED, "response_cost": 0}
    for order in ([free, unpriced], [unpriced, free]):
        last = max(bills(of("litellm", order)), key=lambda bill: int(bill["revision"]))
        assert (last["input_tokens"], last["output_tokens"]) == (10, 5)
        assert "cost_usd" not in last


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"error_class": "APIError", "error_code": "429"}, "rate_limited"),
        ({"error_class": "ContextWindowExceededError", "error_code": "400"}, "cancelled"),
        ({"error_class": "BadRequestError", "error_code": "400"}, "cancelled"),
        ({"error_class": "AuthenticationError", "error_code": "401"}, "cancelled"),
        ({"error_class": "CancelledError", "error_code": ""}, "cancelled"),
        ({"error_class": "InternalServerError", "error_code": "500"}, "error"),
        (
            {
                "error_class": "RateLimitError",
                "error_code": "429",
                "error_rate_limit_category": "litellm_rate_limit",
            },
            "cancelled",
        ),
        (None, "error"),
    ],
)
def test_a_status_follows_whose_fault_it_was(error: Any, status: str) -> None:
    (bill,) = bills(of("litellm", {**FAILED, "error_information": error}))
    assert bill["status"] == status


def test_a_span_s_failure_is_found_where_older_instrumentations_leave_it() -> None:
    thrown = {"name": "exception", **span({"exception.type": "openai.RateLimitError"})}
    for status in ({"code": 2}, {"code": "STATUS_CODE_ERROR"}):
        failed = span(CALL, status=status, events=[{**thrown, "name": "exception"}])
        assert bills(of("otel", exported(failed)))[0]["status"] == "rate_limited"
    assert "status" not in bills(of("otel", exported(span(CALL, status={"code": 1}))))[0]


TOXICITY = {**SCORE, "id": "s-2", "name": "toxicity", "value": 0.0}


def test_several_scores_are_refused_with_their_names_until_one_is_chosen() -> None:
    found = of("langfuse", [TOXICITY, SCORE])
    assert not found.taken and len(found.refused) == 2
    assert all(f in str(found.refused[0].error) for f in ("toxicity", "correctness", "--score"))
    chosen = of("langfuse", [TOXICITY, SCORE], scores=("correctness",))
    assert ([one["reward"] for one in bills(chosen)], chosen.passed_over) == ([0.75], 1)
    records = [
        evaluated(**{"name": name, "score.value": value})
        for name, value in (("Toxicity", 0.0), ("Relevance", 1.0))
    ]
    assert len(of("otel", logged(*records)).refused) == 2
    assert [
        one["reward"] for one in bills(of("otel", logged(*records), scores=("Relevance",)))
    ] == [1.0]


def test_a_chosen_score_is_unmet_until_a_payload_has_it() -> None:
    known = Remembered()
    for score, unmet in ((TOXICITY, True), (SCORE, False), (TOXICITY, False)):
        found = of("langfuse", score, scores=("correctness",), remembered=known)
        assert len(found.taken) + found.passed_over == 1
        said = known.unmet(("correctness",))
        assert (said is not None) == unmet
        assert said is None or ("correctness" in said and "toxicity" in said)
    assert known.unmet(()) is None


def test_a_score_that_was_not_chosen_need_not_be_readable() -> None:
    others = [
        {**SCORE, "name": "topic", "dataType": "CATEGORICAL", "value": "weather"},
        {**SCORE, "name": "stars", "value": 4},
    ]
    found = of("langfuse", {"data": [SCORE, *others]}, scores=("correctness",))
    assert (len(found.taken), found.refused, found.passed_over) == (1, [], 2)
    label = evaluated(name="Topic", **{"score.label": "weather"})
    assert of("otel", logged(label), scores=("Relevance",)).passed_over == 1
    assert len(of("otel", logged(label), scores=("Topic",)).refused) == 1


def test_a_second_score_is_noticed_in_a_later_payload() -> None:
    known = Remembered()
    assert len(of("langfuse", SCORE, remembered=known).taken) == 1
    assert len(of("langfuse", TOXICITY, remembered=known).refused) == 1
    assert len(of("langfuse", SCORE, remembered=known).refused) == 1


def test_another_value_of_a_known_score_is_a_revision() -> None:
    first, again, corrected = bills(of("langfuse", [SCORE, SCORE, {**SCORE, "value": 0.25}]))
    assert first == again and corrected["revision"] > first["revision"]
    edited = {"createdAt": "2026-11-21T09:30:05Z", "updatedAt": "2026-11-21T10:30:05Z"}
    assert bills(of("langfuse", {**SCORE, **edited}))[0]["revision"] == 3600


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        ({**SCORE, "dataType": None}, {"reward": 0.75}),
        ({**SCORE, "dataType": None, "value": True}, {"reward": 1.0}),
        ({**SCORE, "metadata": '{"pb_request_id": "q"}'}, {"request_id": "q"}),
        ({**SCORE, "metadata": "just words"}, {"request_id": "r"}),
        ({**without(SCORE, "traceId"), "sessionId": "c"}, {"session_id": "c"}),
        (
            {**without(SCORE, "traceId"), "subject": {"kind": "session", "id": "c"}},
            {"session_id": "c"},
        ),
        (snake(SCORE), {"request_id": "r", "source": "judge"}),
        ({"batch": [{"type": "trace-create"}, {"type": "score-create", "body": SCORE}]}, {}),
    ],
)
def test_scores_are_read_as_they_are_written(score: Any, expected: dict[str, Any]) -> None:
    (reward,) = bills(of("langfuse", score))
    assert expected.items() <= reward.items()


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("20261120", "2026-11-20T00:00:00Z"),
        (20261120, "2026-11-20T00:00:00Z"),
        ("20261120093000", "2026-11-20T09:30:00Z"),
        ("202611200930", "2026-11-20T09:30:00Z"),
        ("20261120T093000Z", "2026-11-20T09:30:00Z"),
    ],
)
def test_digits_of_a_date_are_a_date(text: Any, time: str) -> None:
    assert rfc3339(text, "at") == time


@pytest.mark.parametrize("text", ["20261340", 20269999, 7, "1234567", True, 1e300, "-5", "20"])
def test_digits_that_are_no_time_of_this_century_are_refused(text: Any) -> None:
    with pytest.raises(Unconvertible, match="at"):
        rfc3339(text, "at")


def test_convert_says_which_item_was_refused_and_shows_the_others() -> None:
    text = json.dumps([LOGGED, ODD_LOGS[1], {**LOGGED, "endTime": "soon"}])
    ran = CliRunner().invoke(main, ["convert", "--from", "litellm"], input=text)
    assert ran.exit_code == 0 and ran.stdout.count('"topic":"costs"') == 2
    assert "item 1: cost_out_of_range" in ran.stderr and "latency_ms" in ran.stderr
    chosen = ["convert", "--from", "langfuse", "--score", "correctness"]
    ran = CliRunner().invoke(main, chosen, input=json.dumps([TOXICITY, SCORE]))
    assert ran.exit_code == 0 and ran.stdout.count('"reward":0.75') == 1
