"""Feedback keeps pace with requests that never end, whatever waits beside it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.group import Batch
from agents.taking.next_group import AT_ONCE, FEW
from agents.taking.turns import LATE, TOGETHER, Turns
from agents.taking.waits import REQUESTS_AT_LEAST, Arrivals, Waits
from streams.service.worker import AGENTS
from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log, routes
from tests.audit_world import router
from tests.memory_worker import MemoryWorker

ROUNDS = 60


class Busy:
    """A worker in a closed loop: each decision brings its bill, its labels and the next request."""

    def __init__(self, *, size: int, window: int, labels: int, d: int = 5) -> None:
        self.worker = MemoryWorker(
            SETTINGS.model_copy(update={"batch_size": size}), [0], validates=False
        )
        self.log, self.window, self.labels, self.d = Log(), window, labels, d
        self.asked = self.answered = 0

    async def start(self) -> None:
        await self.worker.start()
        declared = {**router(HOME), "dimensions": self.d}
        await self.worker.take("routers", [self.log.event("routers", declared)])
        for task in list(self.worker[0].lane._tasks):  # from here on the test takes groups
            task.cancel()
        await asyncio.sleep(0)

    def ask(self) -> None:
        context = [*CONTEXT[:1], *[0.1] * (self.d - 2), 1.0]
        for _ in range(self.window - (self.asked - self.answered)):
            request = {"request_id": f"r-{self.asked}", "context": context}
            self.put("requests", request)
            self.asked += 1

    def put(self, name: str, event: dict[str, Any]) -> None:
        self.worker.inbox(0).put(name, [self.log.event(name, event)])

    def decode(self, name: str, records: list[Any]) -> Batch:
        return AGENTS[name](self.worker[0], records)

    async def round(self) -> None:
        """Let one group pass, and the application answer what was decided."""
        self.ask()
        lane = self.worker[0].lane
        lane.apply(lane.coming.take(self.decode, lane.spawn))
        await lane.under_way.settled()
        for _ in range(60):  # its answers are said
            await asyncio.sleep(0)
        for route in routes(self.worker)[self.answered :]:
            whose = {"request_id": route["request_id"]}
            self.put("costs", {**whose, "cost_usd": 0.001})
            for number in range(self.labels):
                self.put("rewards", {**whose, "reward": 0.5, "source": "judge", "revision": number})
            self.answered += 1

    @property
    def behind(self) -> int:
        """How many bills wait."""
        return len(self.worker.inbox(0).queues["costs"])


@pytest.mark.parametrize(
    ("size", "labels", "d"), [(64, 1, 5), (64, 5, 5), (16, 2, 5), (1, 1, 5), (512, 1, 385)]
)
async def test_bills_keep_pace_with_requests_that_never_end(size: int, labels: int, d: int) -> None:
    busy = Busy(size=size, window=2 * size, labels=labels, d=d)
    await busy.start()
    found = []
    for _ in range(ROUNDS):
        await busy.round()
        found.append(busy.behind)
    assert busy.answered > 0
    # One bill for each decision: where they do not keep pace, their number grows with the rounds.
    first, last = max(found[: ROUNDS // 2]), max(found[ROUNDS // 2 :])
    assert last <= max(first, 2 * size)
    assert busy.worker.partitions[0].routers.engine(HOME).state.settled > 0.5 * busy.answered  # type: ignore[union-attr]


async def test_a_request_beside_a_backlog_of_bills_is_in_the_next_group() -> None:
    busy = Busy(size=64, window=64, labels=1)
    await busy.start()
    await busy.round()
    for revision in range(1_000):
        bill = {"request_id": "r-0", "cost_usd": 0.001, "revision": revision + 1}
        busy.put("costs", bill)
    busy.window = 64 // REQUESTS_AT_LEAST
    busy.answered = busy.asked
    await busy.round()
    assert len(routes(busy.worker)) == busy.asked
    assert busy.behind > 800


async def test_a_group_has_two_turns_worth_of_requests_where_so_many_wait() -> None:
    busy = Busy(size=512, window=3 * FEW, labels=0)
    await busy.start()
    await busy.round()
    assert len(routes(busy.worker)) == AT_ONCE * FEW
    lane, queues = busy.worker[0].lane, busy.worker.inbox(0).queues
    queues["requests"].clear()
    for revision in range(10 * FEW):
        busy.put("costs", {"request_id": "r-0", "cost_usd": 0.001, "revision": revision + 10})
    # Bills alone hold up the requests of other partitions for a turn only.
    bills = lane.coming.take(busy.decode, lane.spawn)
    assert sum(len(batch.messages) for batch in bills) == lane.coming.size.events


async def test_bills_that_overtook_their_requests_leave_the_group_to_them() -> None:
    busy = Busy(size=64, window=0, labels=1)
    await busy.start()
    for number in range(500):
        busy.put("costs", {"request_id": f"r-{number}", "cost_usd": 0.001})
    busy.window = 64
    await busy.round()
    assert len(routes(busy.worker)) == 64


@given(size=st.integers(1, 1_000), waiting=st.lists(st.integers(0, 2_000), min_size=1, max_size=60))
@settings(max_examples=100)
def test_requests_always_have_their_eighth_and_feedback_the_rest(
    size: int, waiting: list[int]
) -> None:
    queues: Any = {"requests": [], "routers": [], "leases": []}
    waits = Waits(None, queues)  # type: ignore[arg-type]
    given = 0
    for many in waiting:
        queues["leases"][:] = [None] * many
        found = waits.requests(size)
        assert size - many <= found <= max(size, 1)
        given += found
    assert given >= math.floor(len(waiting) * size / REQUESTS_AT_LEAST) - 1


class At:
    def __init__(self, offset: int) -> None:
        self.offset = offset


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40))
def test_a_queue_is_as_old_as_its_first_record(steps: list[tuple[int, int]]) -> None:
    from collections import deque

    queue: deque[Any] = deque()
    came: dict[int, float] = {}
    arrivals, end = Arrivals(), 0
    for now, (more, taken) in enumerate(steps):
        for _ in range(more):
            queue.append(At(end))
            came[end], end = float(now), end + 1
        assert arrivals.since(queue, float(now)) == (came[queue[0].offset] if queue else math.inf)
        for _ in range(min(taken, len(queue))):
            queue.popleft()


async def test_late_feedback_has_every_second_turn_however_many_requests_there_are() -> None:
    # Each group fills a turn, and all of them together are not late.
    turns, order = Turns(count(100.0, 1.5 * TOGETHER).__next__), list[str]()

    async def take(name: str, urgent: Callable[[], bool], since: float = math.inf) -> None:
        await turns.take(urgent, since=since)
        order.append(name)

    await turns.take(lambda: False)
    requests = [asyncio.create_task(take("request", lambda: True)) for _ in range(4)]
    late = [
        asyncio.create_task(take(name, lambda: False, 100.0 - seconds * LATE))
        for name, seconds in (("fresh", 0.2), ("late", 2.0), ("later", 3.0))
    ]
    await asyncio.gather(*requests, *late)
    # The first turn was given before anybody waited for one.
    assert order[1:5] == ["later", "request", "late", "request"]
    assert order[-1] == "fresh"
