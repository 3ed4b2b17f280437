"""A fallback is said in the log, with its reason, and not of every call."""

import pytest

from paretobandit_client import Undelivered
from paretobandit_client.fallbacks import Fallbacks
from paretobandit_client.outage import EVERY_SECONDS
from paretobandit_client.sent_events import Ask

SHORT, LONG = (
    Ask(router_id="chat", request_id="r", prompt=prompt) for prompt in ("Hi", "x" * 2**20)
)


def test_a_fallback_is_said_with_its_reason_and_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    fallbacks = Fallbacks(clock=lambda: now)
    fallbacks.note(SHORT, "small", seconds=0.25, why=TimeoutError(), is_outage=True)
    for event in (LONG, SHORT, SHORT):
        fallbacks.note(event, "small", seconds=0.25, why=TimeoutError())
    now = EVERY_SECONDS
    fallbacks.note(SHORT, "small", seconds=0.25, why=Undelivered("too many events"))
    first, second = (one.getMessage() for one in caplog.records)
    assert "router chat: request r goes to the fallback small" in first
    assert "its prompt has 1,048,576 bytes" in first
    assert second.endswith("small: too many events (2 more since the last such line)")
