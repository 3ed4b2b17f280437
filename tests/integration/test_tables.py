"""The durable table on a real broker: what a commit wrote is there as a whole, and only its owner's
counts.
"""

import asyncio
import random
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from streams.changelog_format import EPOCH, FENCE
from tests.integration.counting import CountingService, counting_service, until_async
from tests.integration.counting_worker import WATERMARK


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[CountingService]:
    async with counting_service(kafka, tmp_path) as service:
        yield service


async def drip(service: CountingService, seconds: float) -> None:
    """Produce a few events every few milliseconds."""
    for _ in range(int(seconds / 0.02)):
        await service.produce(8)
        await asyncio.sleep(0.02)


async def drip_until(over: asyncio.Event, service: CountingService) -> None:
    """Produce a few events all the time that something takes."""
    while not over.is_set():
        await drip(service, 0.02)


async def exact(service: CountingService) -> None:
    """Wait until all is answered and committed, and check that every event was counted once."""
    await service.all_answered()
    await service.all_committed()
    assert await service.counted() == service.sent


async def test_a_kill_in_the_middle_of_commits_leaves_each_of_them_whole_or_absent(
    service: CountingService,
) -> None:
    moments = random.Random(3)
    for _ in range(3):
        worker = service.worker(spread=30)
        await worker.says("Worker ready")
        dripping = asyncio.create_task(drip(service, 1.5))
        await asyncio.sleep(moments.uniform(0.3, 1.2))
        worker.kill()
        await dripping
        offsets: dict[int, set[bytes]] = defaultdict(set)
        for (partition, key), value in (await service.table()).items():
            if key.startswith((b"s", WATERMARK)):
                offsets[partition].add(value)
        assert offsets
        assert all(len(values) == 1 for values in offsets.values())
    service.worker(spread=30)
    await exact(service)


async def test_partitions_move_between_workers_and_back_without_loss(
    service: CountingService,
) -> None:
    one = service.worker(instance="one")
    await one.says("Worker ready")
    moved = asyncio.Event()
    dripping = asyncio.create_task(drip_until(moved, service))
    two = service.worker(instance="two")
    await two.says("Worker ready")
    await one.says("LOST")
    await one.says("RECOVERED", times=2)  # all of them, then those that it kept
    # Its session must end before the first worker gets its partitions.
    two.kill()
    await one.says("RECOVERED [0, 1, 2, 3]", times=2)
    moved.set()
    await dripping
    await exact(service)


async def test_a_frozen_owner_that_wakes_up_neither_answers_nor_spoils_the_state(
    service: CountingService,
) -> None:
    env = {"PB_SESSION_TIMEOUT": "6", "PB_HEARTBEAT": "1"}
    frozen = service.worker(instance="frozen", env=env, faults={"batch_delay": 0.5})
    await frozen.says("Worker ready")
    await service.produce(400)
    await until_async(service.any_answered, True)
    frozen.process.send_signal(signal.SIGSTOP)
    heir = service.worker(instance="heir", env=env)
    await heir.says("Worker ready")
    await heir.says("RECOVERED [0, 1, 2, 3]")
    await service.all_answered()
    frozen.process.send_signal(signal.SIGCONT)
    assert await frozen.ended() == 1
    assert "MembershipLost" in frozen.log.read_text()
    await service.produce(100)
    await service.all_answered()
    assert heir.process.poll() is None
    written = await service.read(service.settings.changelog)
    for number in range(4):
        epochs = [
            int(dict(record.headers)[EPOCH]) for record in written if record.partition == number
        ]
        assert epochs == sorted(epochs)
    await exact(service)


async def test_a_stop_and_a_restart_read_only_what_is_new(service: CountingService) -> None:
    await service.produce(200)
    first = service.worker()
    await service.all_answered()
    first.process.terminate()
    assert await first.ended() == 0
    fences = [
        record for record in await service.read(service.settings.changelog) if record.key == FENCE
    ]
    assert len(fences) == 4
    service.worker()
    await exact(service)
    assert len(await service.answered()) == sum((await service.answered()).values())


async def test_changes_too_large_for_one_batch_end_the_worker_with_what_to_do(
    service: CountingService,
) -> None:
    worker = service.worker(spread=40_000, env={"PB_CHANGELOG_BATCH_BYTES": str(2**20)})
    await service.produce(4, partition=0)
    assert await worker.ended() == 1
    assert "lower PB_BATCH_SIZE, or raise PB_CHANGELOG_BATCH_BYTES" in worker.log.read_text()
    assert await service.committed() == {}
