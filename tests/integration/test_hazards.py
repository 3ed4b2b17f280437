"""What Faust loses, freezes or hides without the remedies of this project, and that it does not
with them.

Every hazard is provoked on a real broker, first with its remedy switched off, so that a remedy that
stops working, or is no longer needed, is noticed.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.integration.counting import CountingService, Worker, counting_service, stays_alive, until

# Without the gate, a fetch for the changelogs that is still under way takes the sources' records,
# for nobody.
CROSSING = {"crossing_fetch": 1.0}
POISON = b"poison"
BEFORE_POISON = 20


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[CountingService]:
    async with counting_service(kafka, tmp_path) as service:
        yield service


async def restart_with_backlog(service: CountingService, *, without: list[str]) -> Worker:
    """Start a worker that has a changelog to recover and a backlog behind its committed
    offsets.
    """
    await service.leave_behind(200)
    await service.produce(1000)
    worker = service.worker(without=without, faults=CROSSING)
    await worker.says("Worker ready")
    return worker


async def test_without_the_fetch_gate_events_vanish(service: CountingService) -> None:
    await restart_with_backlog(service, without=["gate", "guard"])
    assert await service.quiet() > 0
    # Later events are processed, as if there were no hole before them.
    await service.produce(160)
    await service.all_answered(since=service.sent - 160)
    assert await service.quiet() > 0


async def test_with_the_fetch_gate_a_restart_loses_nothing(service: CountingService) -> None:
    await restart_with_backlog(service, without=[])
    await service.all_answered()
    await service.all_committed()
    assert await service.counted() == service.sent


async def test_the_gap_guard_turns_a_hole_into_a_restart_that_reads_it_again(
    service: CountingService,
) -> None:
    worker = await restart_with_backlog(service, without=["gate"])
    assert await service.quiet() > 0
    await service.produce(160)
    assert await worker.ended() == 1
    assert "OffsetGap" in worker.tail()
    service.worker()
    await service.all_answered()
    await service.all_committed()
    assert await service.counted() == service.sent


async def poisoned(service: CountingService, **options: Any) -> Worker:
    """Start a worker on a backlog in the middle of which one event is more than its agent can
    bear.
    """
    await service.produce(BEFORE_POISON, partition=0)
    await service.produce(1, value=POISON, partition=0)
    await service.produce(20, partition=0)
    return service.worker(poison=POISON.decode(), env={"PB_BATCH_SIZE": "10"}, **options)


async def committed_over_poison(service: CountingService) -> bool:
    """Tell whether a restart would begin behind the poison."""
    return (await service.committed()).get(0, 0) > BEFORE_POISON


async def test_leaving_at_once_loses_no_event_whose_agent_raised(service: CountingService) -> None:
    worker = await poisoned(service)
    assert await worker.ended() == 1
    assert not await committed_over_poison(service)
    service.worker()
    await service.all_answered()
    await service.all_committed()
    assert POISON in await service.answered()
    assert await service.counted() == service.sent + 1


async def test_a_malformed_event_is_the_agents_to_judge(service: CountingService) -> None:
    service.worker()
    await service.produce(1, value=b"{not json", partition=0)
    await service.produce(20)
    await service.all_answered()
    assert b"{not json" in await service.answered()


async def refuse_large_answers(service: CountingService) -> None:
    limit = ConfigResource(ConfigResourceType.TOPIC, service.routes, {"max.message.bytes": "1000"})
    await service.admin.alter_configs([limit])


async def test_without_awaiting_deliveries_refused_answers_are_committed_away(
    service: CountingService,
) -> None:
    await refuse_large_answers(service)
    service.worker(without=["await"], answer_bytes=5000)
    await service.produce(40)
    await service.all_committed()
    assert await service.missing() == 40


async def test_awaiting_deliveries_commits_nothing_whose_answer_was_refused(
    service: CountingService,
) -> None:
    await refuse_large_answers(service)
    await service.produce(40)
    worker = service.worker(answer_bytes=5000)
    assert await worker.ended() == 1
    assert "MessageSizeTooLarge" in worker.tail()
    assert await service.committed() == {}


@asynccontextmanager
async def stranger(service: CountingService) -> AsyncIterator[None]:
    """Be a member of the group with another protocol: the broker refuses whoever speaks only
    Faust's.
    """
    group = {"bootstrap_servers": service.settings.bootstrap, "group_id": service.settings.app_id}
    async with AIOKafkaConsumer(service.requests, **group) as consumer:
        await until(lambda: bool(consumer.assignment()))
        yield


async def test_without_the_watch_a_refused_member_lives_on_as_a_zombie(
    service: CountingService,
) -> None:
    await service.produce(10)
    async with stranger(service):
        worker = service.worker(without=["watch"])
        await worker.says("joining group")
        await stays_alive(worker)
        assert await service.missing() == 10


async def test_the_watch_ends_a_refused_member(service: CountingService) -> None:
    async with stranger(service):
        worker = service.worker()
        assert await worker.ended() == 1
        assert "InconsistentGroupProtocol" in worker.tail()


async def test_a_broker_that_grants_no_short_session_gets_a_member_with_a_longer_one(
    service: CountingService,
) -> None:
    await service.produce(10)
    worker = service.worker(faults={"session_timeout": 0.5})
    await service.all_answered()
    assert "the broker grants no session of 0.5 s, it is 6 s now" in worker.tail()
