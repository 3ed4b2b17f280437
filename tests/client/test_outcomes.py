"""How calls failed, whose fault that was, and what of a bill stands beside its money."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paretobandit_client.attempt_sums import Attempts
from paretobandit_client.outcomes import retry_after_of, status_of
from paretobandit_client.side_numbers import fitting
from schemas import CostReported

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (
            "APIError InternalServerError ServiceUnavailableError api_error server_error "
            "UNAVAILABLE java.net.ConnectException _OTHER 500 502 529 NotFoundError "
            "overloaded_error",
            "error",
        ),
        (
            "RateLimitError openai.RateLimitError rate_limit_exceeded 429 ThrottlingException "
            "TooManyRequestsException insufficient_quota ResourceExhausted RESOURCE_EXHAUSTED",
            "rate_limited",
        ),
        (
            "Timeout APITimeoutError httpx.ReadTimeout 408 504 DEADLINE_EXCEEDED timeout "
            "java.net.SocketTimeoutException",
            "timeout",
        ),
        ("ContentPolicyViolationError content_filter", "refused"),
        ("model_not_found ModelDeprecatedError model_decommissioned", "gone"),
        (
            "BadRequestError ContextWindowExceededError context_length_exceeded "
            "AuthenticationError authentication_error PermissionDeniedError PERMISSION_DENIED "
            "invalid_request_error "
            "ValidationException UnprocessableEntityError 400 401 403 413 422 499 CancelledError "
            "asyncio.exceptions.CancelledError GeneratorExit AbortError BudgetExceededError",
            "cancelled",
        ),
    ],
)
def test_a_model_is_only_held_to_fail_for_what_was_not_its_callers_fault(
    names: str, status: str
) -> None:
    assert {name: status_of(name) for name in names.split()} == dict.fromkeys(names.split(), status)


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("APIError", 429, "rate_limited"),
        ("APIError", "429", "rate_limited"),
        ("APIStatusError", 400, "cancelled"),
        ("APIConnectionError", 500, "error"),
        ("ContentPolicyViolationError", 400, "refused"),
        ("HTTPException", None, "error"),
        ("", "", "error"),
        ("", "401", "cancelled"),
        ("", 410, "gone"),
    ],
)
def test_a_general_error_is_told_by_its_code(name: str, code: object, status: str) -> None:
    assert status_of(name, code) == status


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "124633"}, 124_633.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "1500ms"}, 1.5),
        ({"retry-after": "30s"}, 30.0),
        ({"retry-after-ms": "1234", "retry-after": "2"}, 1.234),
        ({"x-ms-retry-after-ms": "500"}, 0.5),
        ({"retry-after": "Sat, 21 Nov 2026 09:31:30 GMT"}, 90.0),
        ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": ["7"]}, 7.0),
        ({"retry-after": 7}, 7.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "NaN"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: Any, seconds: float | None) -> None:
    assert retry_after_of(headers, now=NOW) == seconds


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 100),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=1),
)


@given(
    st.floats(0.0, 1000.0),
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            (
                "latency_ms",
                "first_token_ms",
                "retry_after_seconds",
                "input_tokens",
                "output_tokens",
                "cached_input_tokens",
            ),
            ODD,
        ),
    ),
)
def test_whatever_stands_beside_dollars_the_dollars_are_booked(
    usd: float, beside: dict[str, Any]
) -> None:
    bill = {"router_id": "r", "request_id": "q", "cost_usd": usd, **beside}
    kept, notes = fitting(bill)
    assert CostReported.model_validate(kept).cost_usd == usd
    lost = [name for name, value in beside.items() if value is not None and name not in kept]
    assert all(any(name in note for note in notes) for name in lost)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=12
    )
)
def test_the_last_bill_is_of_every_attempt_once_in_whatever_order(
    reports: list[tuple[int, float, bool]],
) -> None:
    attempts, first = Attempts(), dict[int, float]()
    booked, revision = 0.0, -1
    for attempt, usd, answered in reports:
        first.setdefault(attempt, usd)
        own = {"cost_usd": first[attempt], "revision": int(answered)}
        total = attempts.add("r", attempt, own)
        # As the service books: a higher revision replaces the bill, any other changes nothing.
        if int(str(total["revision"])) > revision:
            booked, revision = float(str(total["cost_usd"])), int(str(total["revision"]))
    assert booked == math.fsum(first.values())


def test_attempts_of_forgotten_requests_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paretobandit_client.attempt_sums.REMEMBERED", 2)
    attempts = Attempts()
    for request in ("a", "b", "c", "a"):
        total = attempts.add(request, request, {"cost_usd": 1.0, "revision": 1})
        assert total["cost_usd"] == 1.0
    assert len(attempts._requests) == 2


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", 5])
def test_a_name_that_is_none_does_not_refuse_the_money(name: object) -> None:
    kept, notes = fitting({"cost_usd": 0.01, "answered_by": name})
    assert kept == {"cost_usd": 0.01} and "answered_by" in notes[0]
    assert fitting({"cost_usd": 0.01, "answered_by": "m"}) == (
        {"cost_usd": 0.01, "answered_by": "m"},
        [],
    )
