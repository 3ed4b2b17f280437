"""A lane over a log that takes its time, refuses, or loses what it was given: nothing is said that
is not durable, and the next owner has the state of a worker that never crashed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agents.partition.lane import Awaited
from agents.partition.under_way import UNDER_WAY, Gone, Voided
from agents.table import keys
from agents.upkeep.sweep import Sweep
from streams.settings import Settings
from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log, routes
from tests.audit_world import router
from tests.memory_worker import MemoryWorker

ONE_A_GROUP = SETTINGS.model_copy(update={"batch_size": 1})


class Slow(MemoryWorker):
    """A worker whose batches land when the test says so.

    Attributes:
        held: whether batches wait from now on.
        waiting: of each batch that waits, its partition, and the future that decides: true lands
            and says so, false is lost, None lands and the answer is lost.
    """

    def __init__(self, settings: Settings = SETTINGS, partitions: tuple[int, ...] = (0,)) -> None:
        super().__init__(settings, partitions)
        self.held = False
        self.waiting: list[tuple[int, asyncio.Future[bool | None]]] = []

    async def _publish(self, number: int, changes: Mapping[bytes, bytes | None], epoch: int) -> int:
        lands: bool | None = True
        if self.held:
            decides = asyncio.get_running_loop().create_future()
            self.waiting.append((number, decides))
            lands = await decides
        if lands is False:
            raise ConnectionError("the batch is lost")
        first = await super()._publish(number, changes, epoch)
        if lands is None:
            raise ConnectionError("what the broker said is lost")
        return first

    async def fetched(self, topic: str, *messages: Any) -> None:
        """Let messages come, and the lanes do what they can."""
        for message in messages:
            self.inbox(message.partition).put(topic, [message])
        await passes()

    async def decide(self, lands: bool | None = True) -> None:
        """Decide on the oldest batch that waits."""
        _, decides = self.waiting.pop(0)
        decides.set_result(lands)
        await passes()

    def seqs(self) -> list[int]:
        """Return the numbers of the decisions that were said."""
        return [route["seq"] for route in routes(self)]


async def passes() -> None:
    """Let everything go on as far as it can without a decision."""
    for _ in range(60):
        await asyncio.sleep(0)


def ask(log: Log, name: str, **record: Any) -> Any:
    return log.event("requests", {"request_id": name, "context": CONTEXT}, **record)


async def started(worker: Slow | None = None) -> tuple[Slow, Log]:
    """Return a worker with one router, whose next batches wait."""
    worker, log = worker or Slow(), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    worker.held = True
    return worker, log


async def test_the_next_group_is_applied_while_one_travels_and_each_is_answered_as_it_lands() -> (
    None
):
    worker, log = await started(Slow(ONE_A_GROUP))
    await worker.fetched("requests", ask(log, "a"))
    await worker.fetched("requests", ask(log, "b"))
    assert worker.partitions[0].routers.knows(HOME, "b")
    assert (len(worker.waiting), worker.seqs()) == (1, [])  # one batch travels at a time
    await worker.decide()
    assert (len(worker.waiting), worker.seqs()) == (1, [1])
    await worker.decide()
    assert worker.seqs() == [1, 2]


@pytest.mark.parametrize(("settings", "applied"), [(ONE_A_GROUP, UNDER_WAY), (SETTINGS, 1)])
async def test_what_is_under_way_is_bounded_and_less_than_a_group_waits_for_what_travels(
    settings: Settings, applied: int
) -> None:
    worker, log = await started(Slow(settings))
    for number in range(10):
        await worker.fetched("requests", ask(log, f"r-{number}"))
    assert sum(worker.partitions[0].routers.knows(HOME, f"r-{n}") for n in range(10)) == applied
    await worker.decide()
    assert (len(worker.waiting), worker.seqs()) == (1, [1])
    await worker.decide()
    # All that came meanwhile is one group, where it is allowed to be.
    assert worker.seqs() == ([1, 2] if settings is ONE_A_GROUP else list(range(1, 11)))


async def test_a_group_on_the_log_ends_with_its_offsets() -> None:
    worker, log = await started()
    worker.held = False
    before = len(worker.changelog)
    bill = log.event("costs", {"request_id": "r-0", "cost_usd": 0.001})
    worker.inbox(0).put("costs", [bill])
    await worker.take("requests", [ask(log, f"r-{number}") for number in range(3)])
    written = [key[:1] for _, key, *_ in worker.changelog[before:]]
    assert (written[-1], written.count(keys.WATERMARKS)) == (keys.WATERMARKS, 1)


async def test_partitions_do_not_wait_for_each_other() -> None:
    two = SETTINGS.model_copy(update={"partitions": 2})
    homes = {number: _at_home(number) for number in range(2)}
    worker, log = Slow(two, (0, 1)), Log()
    await worker.start()
    for number, home in homes.items():
        declared = log.event("routers", router(home), key=home.encode(), partition=number)
        await worker.take("routers", [declared])
    worker.held = True
    for number, home in homes.items():
        event = {"router_id": home, "request_id": "r", "context": CONTEXT}
        await worker.fetched(
            "requests", log.event("requests", event, key=home.encode(), partition=number)
        )
    worker.waiting.sort(key=lambda one: -one[0])
    await worker.decide()
    assert [route["router_id"] for route in routes(worker)] == [homes[1]]


def _at_home(number: int) -> str:
    from streams.partitioner import partition_of

    return next(f"h{i}" for i in range(100) if partition_of(f"h{i}", 2) == number)


async def test_offsets_are_finished_in_the_order_of_the_groups() -> None:
    worker, log = await started()
    worker.held = False
    worker.gate = asyncio.Event()
    await worker.fetched("requests", ask(log, "a"))
    await worker.fetched("costs", log.event("costs", {"request_id": "a", "cost_usd": 0.001}))
    assert worker.states.partition(0).end > 3  # both are durable, and the decision is not said
    assert "requests" not in worker.inbox(0).done and "costs" not in worker.inbox(0).done
    worker.gate.set()
    await passes()
    assert (worker.inbox(0).done["requests"], worker.inbox(0).done["costs"]) == (1, 1)


async def test_what_is_published_of_a_router_waits_until_it_is_durable() -> None:
    from agents.publishing.publish import publish

    worker, log = await started()
    await worker.fetched("requests", ask(log, "a"))
    publishing = asyncio.create_task(publish(worker.partitions))
    await passes()
    assert not publishing.done() and not worker.said
    await worker.decide()
    await publishing
    assert {topic for topic, *_ in worker.said} == {"pb.routes", "pb.lambda"}


@pytest.mark.parametrize("lands", [False, None], ids=["lost", "landed and never heard of"])
@pytest.mark.parametrize("landed", [0, 1])
async def test_a_batch_that_fails_voids_all_behind_it_and_the_next_owner_goes_on_from_before(
    landed: int, lands: bool | None
) -> None:
    worker, log = await started()
    events = [ask(log, name) for name in "abc"]
    for event in events:
        await worker.fetched("requests", event)
    for _ in range(landed):
        await worker.decide()
    await worker.decide(lands)
    assert worker.seqs() == list(range(1, landed + 1))
    assert worker.waiting == []  # nothing follows it to the log
    await worker.fetched("requests", ask(log, "d"))
    assert worker.seqs() == list(range(1, landed + 1))

    after, steady = MemoryWorker(SETTINGS, [0]), MemoryWorker(SETTINGS, [0])
    await after.start(worker)
    await after.take("requests", events)
    assert [(r["request_id"], r["seq"], r["repeat"]) for r in routes(after)] == [
        ("a", 1, False),
        ("b", 2, False),
        ("c", 3, False),
    ]
    await steady.start()
    await steady.take("routers", [Log().event("routers", router(HOME))])
    await steady.take("requests", events)
    assert _without_fence(after.table(0)) == _without_fence(steady.table(0))


def _without_fence(table: dict[bytes, bytes]) -> dict[bytes, bytes]:
    return {key: value for key, value in table.items() if key[:1] != b"\x00"}


async def test_a_batch_that_lands_behind_anothers_is_void_and_says_nothing() -> None:
    worker, log = await started()
    asked = ask(log, "a")
    await worker.fetched("requests", asked)
    heir = MemoryWorker(SETTINGS, [0])
    await heir.start(worker)
    worker._ends[0] += 1  # the heir's fence
    await worker.decide()
    assert worker.seqs() == []
    await heir.take("requests", [asked])
    assert [route["seq"] for route in routes(heir)] == [1]


async def test_who_awaits_while_a_group_is_applied_ends_the_process() -> None:
    worker, _ = await started()
    lane = worker.partitions[0].lane
    with pytest.raises(Awaited), lane.applying():
        await asyncio.sleep(0)
    with pytest.raises(Voided):
        await lane.under_way.room()


async def test_who_waits_for_room_of_a_partition_that_is_lost_is_told_and_its_timer_goes_on() -> (
    None
):
    worker, _ = await started()
    await worker.states.close()
    refusing = asyncio.create_task(worker[0].lane.group().__aenter__())
    sweeping = asyncio.create_task(Sweep(worker.partitions).round())
    await passes()
    assert not refusing.done() and not sweeping.done()
    worker.partitions.lost(frozenset({0}))
    async with asyncio.timeout(5):
        with pytest.raises(Gone):
            await refusing
        await sweeping
