"""Who waits for which decision."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from paretobandit_client import Refusal, Refused, Route
from paretobandit_client.waiting import Waiting

REF = ("chat", "r")


def route(request_id: str = "r") -> Route:
    """Return a decision."""
    terms: dict[str, Any] = {
        "propensity": 1.0,
        "expected_reward": 0.9,
        "expected_cost_usd": 0.1,
        "lambda_t": 0.0,
        "repeat": False,
    }
    return Route(
        router_id="chat",
        request_id=request_id,
        model="small",
        seq=1,
        reason="ucb",
        decided_at=datetime.now(UTC),
        **terms,
    )


def refusal(offset: int = -1, *, topic: str = "requests", request_id: str | None = "r") -> Refusal:
    """Return a refusal."""
    return Refusal(
        router_id="chat",
        request_id=request_id,
        topic=topic,
        partition=0,
        offset=offset,
        reason="cap_reached",
    )


async def test_everyone_who_waits_gets_the_decision() -> None:
    waiting = Waiting()
    calls = [asyncio.create_task(waiting.wait(REF, seconds=5.0)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting.decided(route("other"))
    waiting.decided(route())
    waiting.decided(route())
    assert [answer.model for answer in await asyncio.gather(*calls)] == ["small"] * 3
    assert len(waiting) == 0


async def test_one_that_gives_up_does_not_end_the_others_wait() -> None:
    waiting = Waiting()
    patient = asyncio.create_task(waiting.wait(REF, seconds=5.0))
    hasty = asyncio.create_task(waiting.wait(REF, seconds=0.001))
    cancelled = asyncio.create_task(waiting.wait(REF, seconds=5.0))
    with pytest.raises(TimeoutError):
        await hasty
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    waiting.decided(route())
    assert (await patient).model == "small"
    assert len(waiting) == 0


async def test_late_decisions_are_counted_once() -> None:
    waiting = Waiting()
    with pytest.raises(TimeoutError):
        await waiting.wait(REF, seconds=0.001)
    waiting.decided(route("never asked"))
    waiting.decided(route())
    waiting.decided(route())
    assert waiting.late == 1
    assert len(waiting) == 0


async def test_only_the_refusal_of_the_event_that_was_sent_counts() -> None:
    waiting = Waiting()
    call = asyncio.create_task(waiting.wait(REF, seconds=5.0))
    await asyncio.sleep(0)
    waiting.placed(REF, (0, 7))
    assert not waiting.refused(refusal(3))
    assert not waiting.refused(refusal(7, topic="costs"))
    assert not waiting.refused(refusal(7, request_id=None))
    assert waiting.refused(refusal(7))
    with pytest.raises(Refused, match="cap_reached"):
        await call
    assert not waiting.refused(refusal(7))


async def test_a_refusal_that_overtakes_the_acknowledgement_waits_for_it() -> None:
    waiting = Waiting()
    call = asyncio.create_task(waiting.wait(REF, seconds=5.0))
    await asyncio.sleep(0)
    assert waiting.refused(refusal(7))
    await asyncio.sleep(0)
    assert not call.done()
    waiting.placed(REF, (0, 7))
    with pytest.raises(Refused):
        await call
