"""Reports of calls: what is handed to the link, and that one wrong report stops no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paretobandit_client.client_errors import Undelivered
from paretobandit_client.router_reports import RouterReports
from paretobandit_client.sent_events import Cost, Event, Reward, Verdict

pytestmark = pytest.mark.asyncio


class Kept:
    """A link that keeps what it is handed; it does not take anything about `lost`."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def deliver(self, event: Event) -> asyncio.Task[None]:
        self.events.append(event)

        async def carry() -> None:
            if event.request_id == "lost":
                raise Undelivered("no broker")

        return asyncio.create_task(carry())


class Reports(RouterReports):
    """Reports about one router."""

    def __init__(self, link: Kept) -> None:
        self.router_id = "r"
        self._link: Any = link


async def test_all_bills_are_sent_even_if_one_is_wrong_and_another_lost() -> None:
    link = Kept()
    bills = [{"request_id": str(n), "cost_usd": 0.5, "attempt": n} for n in range(3)]
    wrong = {"request_id": "x", "cost_usd": -1.0}
    with pytest.raises(ValueError, match="cost_usd"):
        await Reports(link).cost_many([*bills[:1], wrong, *bills[1:]])
    assert [(one.request_id, one.attempt) for one in link.events if isinstance(one, Cost)] == [
        ("0", 0),
        ("1", 1),
        ("2", 2),
    ]
    with pytest.raises(Undelivered):
        await Reports(link).cost_many([{"request_id": "lost", "cost_usd": 0.5}, *bills])
    assert len(link.events) == 7


async def test_a_call_without_an_answer_may_have_cost_nothing() -> None:
    link = Kept()
    await Reports(link).cost("q", status="timeout", attempt=1)
    with pytest.raises(ValueError, match="a bill needs"):
        await Reports(link).cost("q")
    (bill,) = link.events
    assert isinstance(bill, Cost) and (bill.cost_usd, bill.attempt) == (0.0, 1)


async def test_a_verdict_is_no_reward_and_both_are_bounded() -> None:
    link = Kept()
    await Reports(link).verdict("q", "tests", True, attempt=1)
    await Reports(link).reward("q", 0.5, source="user", attempt=1)
    for wrong in (1.5, float("nan"), None):
        with pytest.raises(ValueError, match="verdict"):
            await Reports(link).verdict("q", "tests", wrong)  # type: ignore[arg-type]
    said, judged = link.events
    assert isinstance(said, Verdict) and (said.verifier, said.attempt) == ("tests", 1)
    assert isinstance(judged, Reward) and (judged.reward, judged.attempt) == (0.5, 1)
