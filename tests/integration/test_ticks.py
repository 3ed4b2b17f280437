"""A worker whose fetches wait for a tick loses nothing, keeps the order, and commits all it did."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.integration.service import RunningService, cost, request, reward, router, running_service

ROUTERS = tuple(f"r{i}" for i in range(6))
EACH = 20
MODULE = "tests.integration.always_busy_worker"


async def lag(service: RunningService) -> int:
    """Return how many requests, bills and rewards the group has not committed."""
    settings = service.settings
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap, group_id=settings.app_id, enable_auto_commit=False
    )
    await consumer.start()
    try:
        tps = [
            TopicPartition(settings.topic(name), number)
            for name in ("requests", "costs", "rewards")
            for number in range(settings.partitions)
        ]
        ends = await consumer.end_offsets(tps)
        return sum([end - (await consumer.committed(tp) or 0) for tp, end in ends.items()])
    finally:
        await consumer.stop()


def booked(service: RunningService, events: int) -> bool:
    """Tell whether every router has settled and learned so many events."""
    told = [service.lambda_of(name) for name in ROUTERS]
    return all((one.get("settled"), one.get("rewards_applied")) == (events, events) for one in told)


@pytest.mark.parametrize("partitions", [1, 3])
async def test_in_ticks_every_event_is_taken_once_and_in_order_whatever_a_kill_interrupts(
    kafka: str, tmp_path: Path, partitions: int
) -> None:
    async with running_service(kafka, tmp_path, partitions=partitions) as service:
        worker = await service.ready(service.worker(instance="one", module=MODULE))
        for name in ROUTERS:
            await service.send("routers", router(name))
        for number in range(EACH):
            if number == EACH // 2:  # what was fetched, travels, or is not committed is done again
                worker.kill()
                worker = service.worker(instance="one", module=MODULE)
            for name in ROUTERS:
                request_id = f"{name}-{number}"
                await service.post("requests", request(name, request_id, seed=number))
                await service.post("costs", cost(name, request_id, 1e-4))
                await service.post("rewards", reward(name, request_id, 0.5))
            await asyncio.sleep(0.005)  # several ticks have some of it
        await service.until(lambda: booked(service, EACH), "all of it to be booked")
        for name in ROUTERS:
            said = {route["seq"]: route["request_id"] for route in service.routes(name)}
            assert said == {seq: f"{name}-{seq - 1}" for seq in range(1, EACH + 1)}
        assert not service.reasons()
        async with asyncio.timeout(60):
            while await lag(service):
                await service.poll()
        assert worker.running
