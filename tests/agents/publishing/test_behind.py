"""A worker says when its routers decide on books that are old."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.publishing.publish import ALERT_AFTER, CALM_BELOW, MOST_ROUTERS, Behind, publish
from schemas import AlertRaised, LambdaUpdated, decode
from streams.service.books_metrics import BooksMetrics
from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log
from tests.audit_world import router
from tests.memory_worker import MemoryWorker


class World:
    """A worker whose bills nobody takes, and its monotonic clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.worker, self.log = MemoryWorker(SETTINGS, [0]), Log()
        self.behind = Behind(self.worker.partitions)

    async def start(self) -> None:
        await self.worker.start()
        await self.worker.take("routers", [self.log.event("routers", router(HOME))])
        self.worker.partitions[0].waits._clock = lambda: self.now
        await self.decide()
        await self.behind.look()

    async def decide(self) -> None:
        number = self.log.offsets.get("requests", -1) + 1
        event = {"request_id": f"r-{number}", "context": CONTEXT}
        await self.worker.take("requests", [self.log.event("requests", event)])

    def bill(self, request_id: str = "r-0", **record: Any) -> None:
        """Let a bill wait: no lane is told of it."""
        event = {"request_id": request_id, "cost_usd": 0.001}
        self.worker.inbox(0).queues["costs"].append(self.log.event("costs", event, **record))

    async def pass_time(self, seconds: float, *, decides: bool = True) -> None:
        """Let time pass, while requests are decided and no bill is taken."""
        self.now += seconds
        if decides:
            self.worker.partitions[0].watermarks.offsets["pb.requests"] += 1
        await self.behind.look()

    async def said(self, topic: str) -> list[dict[str, Any]]:
        """Return what was published on a topic."""
        self.worker.said.clear()
        await publish(self.worker.partitions)
        return [json.loads(v or b"") for t, _, v, _ in self.worker.said if t == f"pb.{topic}"]

    def metric(self) -> float:
        (family,) = BooksMetrics(self.worker.partitions).collect()
        return float(family.samples[0].value)


@pytest.fixture
async def world() -> World:
    world = World()
    await world.start()
    return world


async def test_routers_are_told_once_that_they_decide_without_bills_that_wait(world: World) -> None:
    world.bill()
    await world.pass_time(0.0)
    await world.pass_time(ALERT_AFTER + 1.0)
    await world.pass_time(1.0)
    (alert,) = await world.said("alerts")
    told = decode(AlertRaised, json.dumps(alert).encode())
    assert (told.kind, told.router_id) == ("feedback_behind", HOME)
    assert told.size > ALERT_AFTER
    assert told.evidence == {"waiting": 1, "of_all": 1, "routers": 1}
    assert world.metric() > ALERT_AFTER


async def test_they_are_told_again_only_after_feedback_has_kept_pace(world: World) -> None:
    for _ in range(2):
        world.bill()
        await world.pass_time(0.0)
        await world.pass_time(ALERT_AFTER + 1.0)
        assert [one["kind"] for one in await world.said("alerts")] == ["feedback_behind"]
        world.worker.inbox(0).queues["costs"].clear()
        world.bill()
        # Still a wait, and a shorter one.
        await world.pass_time(0.0)
        await world.pass_time(CALM_BELOW / 2)
        world.worker.inbox(0).queues["costs"].clear()
        await world.pass_time(0.0)
        assert world.metric() == 0.0


async def test_who_decides_nothing_decides_on_no_old_books(world: World) -> None:
    world.bill()
    await world.pass_time(0.0, decides=False)
    await world.pass_time(ALERT_AFTER + 1.0, decides=False)
    assert await world.said("alerts") == []


async def test_bills_ahead_of_their_requests_make_no_books_old(world: World) -> None:
    world.bill("r-999")
    await world.pass_time(0.0)
    await world.pass_time(ALERT_AFTER + 1.0)
    assert await world.said("alerts") == []
    assert world.metric() == 0.0


async def test_a_state_says_how_old_its_books_are_and_nothing_where_nothing_waits(
    world: World,
) -> None:
    (state,) = await world.said("lambda")
    assert "books_age_ms" not in state
    world.bill()
    world.worker.partitions[0].waits.longest()
    world.now += 2.5
    world.worker[0].news.changed(HOME)
    (state,) = await world.said("lambda")
    assert state["books_age_ms"] == 2500.0
    assert decode(LambdaUpdated, json.dumps(state).encode()).books_age_ms == 2500.0


async def test_no_more_routers_are_told_than_a_log_can_bear(world: World) -> None:
    names = [f"h-{number}" for number in range(MOST_ROUTERS + 10)]
    declared = [
        world.log.event("routers", {**router(name), "router_id": name}, key=name.encode())
        for name in names
    ]
    await world.worker.take("routers", declared)
    world.bill()
    for name in names:
        world.bill("r-0", key=name.encode())
    await world.pass_time(0.0)
    await world.pass_time(ALERT_AFTER + 1.0)
    assert len(await world.said("alerts")) == MOST_ROUTERS
