"""A real worker with its contexts in a real Redis."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis

from agents.table import keys
from router_state.state import invariants
from streams.log.service_topics import cluster_id
from tests.integration.service import RunningService, cost, request, reward, router, running_service

HOME = "acme.redis"
REQUESTS = 20


@pytest.fixture
async def service(kafka: str, redis_url: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with running_service(kafka, tmp_path, PB_REDIS_URL=redis_url) as running:
        await running.ready(running.worker())
        await running.send("routers", router(HOME))
        for number in range(REQUESTS):
            await running.send("requests", request(HOME, f"r-{number}", seed=number))
        await running.until(lambda: len(running.routes(HOME)) == REQUESTS, "every decision")
        yield running


async def finish(service: RunningService) -> None:
    for number in range(REQUESTS):
        await service.send("costs", cost(HOME, f"r-{number}", 0.0005))
        await service.send("rewards", reward(HOME, f"r-{number}", 0.8))
    done = {"settled": REQUESTS, "rewards_applied": REQUESTS}
    await service.until(
        lambda: done.items() <= service.lambda_of(HOME).items(), "every bill and reward"
    )
    assert not service.dead_letters()


async def test_contexts_wait_in_redis_and_come_back_for_rewards(
    service: RunningService, redis_url: str
) -> None:
    cluster = await cluster_id(service.settings)
    begin = f"{service.settings.prefix}context:{cluster}:{service.settings.app_id}:{HOME}:"
    with redis.Redis.from_url(redis_url) as client:
        assert cluster and len(client.keys(f"{begin}*")) == REQUESTS
    await finish(service)
    engine = await service.engine(HOME)
    invariants.check(engine.state, engine.records)


async def test_a_redis_that_was_emptied_is_refilled_from_the_changelog(
    service: RunningService, redis_url: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        for key in client.scan_iter(f"{service.settings.prefix}*"):
            client.delete(key)
    await finish(service)


async def test_a_worker_that_recovered_needs_no_context_of_its_own(service: RunningService) -> None:
    (first,) = service.workers
    first.terminate()
    await asyncio.to_thread(first.process.wait, 30)
    await service.ready(service.worker())
    await finish(service)


async def test_contexts_stay_on_the_changelog(service: RunningService) -> None:
    partition = (await service.partitions())[service.partition_of(HOME)]
    contexts = keys.key(keys.CONTEXT, HOME)
    assert sum(key.startswith(contexts) for key in partition.records) == REQUESTS
