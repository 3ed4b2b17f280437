"""Bills on the wire as events of the core."""

from __future__ import annotations

import orjson

from agents.taking.core_events import charged
from schemas.quick import Bill, read


def test_every_field_of_a_bill_reaches_the_core() -> None:
    bill = {
        "router_id": "r",
        "request_id": "q",
        "cost_usd": 0.5,
        "input_tokens": 7,
        "output_tokens": 3,
        "cached_input_tokens": 2,
        "model": "m",
        "answered_by": "other",
        "revision": 4,
        "attempt": 1,
        "status": "gone",
        "retry_after_seconds": 9,
        "latency_ms": 1500,
        "first_token_ms": 250,
    }
    event = charged(read(Bill, key=None, value=orjson.dumps(bill)), offset=11, waited=True)
    assert (event.request_id, event.cost_usd, event.tokens, event.cached) == ("q", 0.5, (7, 3), 2)
    assert (event.model, event.answered_by, event.revision) == ("m", "other", 4)
    assert (event.attempt, event.status, event.retry_after) == (1, "gone", 9)
    assert (event.latency, event.first_token, event.offset, event.waited) == (1.5, 0.25, 11, True)
