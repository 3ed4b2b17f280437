"""What clients choose about the bytes on the wire: compression, transactions, headers, keys,
tombstones.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from tests.integration.forked import programs
from tests.integration.service import (
    ROOT,
    RunningService,
    cost,
    request,
    reward,
    router,
    running_service,
)

HOME = "acme.wire"
CODECS = ("gzip", "snappy", "lz4", "zstd")
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_for_all(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    async with running_service(
        kafka, tmp_path_factory.mktemp("one"), PB_ORPHAN_WAIT="1", PB_UNKNOWN_ROUTER_WAIT="1"
    ) as running:
        await running.ready(running.worker())
        yield running


@pytest.fixture
def service(one_for_all: RunningService) -> RunningService:
    """Return the service without what it said in earlier tests."""
    return one_for_all.forget()


def raw(event: dict[str, Any]) -> bytes:
    # Codecs leave alone what they can't make smaller.
    return json.dumps({**event, "padding": "x" * 2000}).encode()


async def send(
    service: RunningService, producer: AIOKafkaProducer, topic: str, *events: dict[str, Any]
) -> None:
    for event in events:
        await producer.send_and_wait(
            service.settings.topic(topic), raw(event), key=event["router_id"].encode()
        )


def pbstream(service: RunningService, *arguments: str) -> str:
    """Run a command of the CLI on the topics of a service, and return what it printed."""
    settings = service.settings
    own = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PB_")}
    done = subprocess.run(
        [str(programs() / "pbstream"), *arguments],
        env={**kept, **own, "PB_PARTITIONS": str(settings.partitions)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def test_every_codec_is_read_on_every_source_topic_and_by_every_command(
    service: RunningService,
) -> None:
    for codec in CODECS:
        home, requests = f"{HOME}.{codec}", [f"{codec}-{number}" for number in range(3)]
        async with AIOKafkaProducer(
            bootstrap_servers=service.settings.bootstrap, compression_type=codec
        ) as producer:
            await send(service, producer, "routers", router(home))
            await send(
                service, producer, "requests", *(request(home, name, seed=1) for name in requests)
            )
            await send(service, producer, "costs", *(cost(home, name, 0.0005) for name in requests))
            await send(
                service, producer, "rewards", *(reward(home, name, 0.9) for name in requests)
            )
    done = {"settled": 3, "rewards_applied": 3}
    for codec in CODECS:
        await service.until(
            lambda home=f"{HOME}.{codec}": done.items() <= service.lambda_of(home).items(),
            codec,
        )
    assert service.workers[0].running
    assert not service.dead_letters()
    pbstream(service, "audit")
    pbstream(service, "replay", "--verify", "--all-routers")
    for codec in CODECS:
        assert codec in pbstream(service, "watch", "--once", "--router", f"{HOME}.{codec}")


async def test_what_a_transaction_aborted_never_happened(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    await service.send("requests", request(home, "r-1"))
    await service.until(lambda: service.route("r-1"), "a decision")
    topic = service.settings.topic("costs")
    async with AIOKafkaProducer(
        bootstrap_servers=service.settings.bootstrap, transactional_id=topic
    ) as producer:
        await producer.begin_transaction()
        await send(service, producer, "costs", cost(home, "r-1", 0.5))
        await producer.abort_transaction()
        async with producer.transaction():
            await send(service, producer, "costs", cost(home, "r-1", 0.001))
    await service.until(lambda: service.lambda_of(home).get("settled") == 1, "the bill")
    assert service.lambda_of(home)["spend_usd"] == 0.001
    pbstream(service, "audit")


async def test_the_end_of_a_transaction_is_no_request_that_bills_wait_for(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    async with AIOKafkaProducer(
        bootstrap_servers=service.settings.bootstrap, transactional_id=home
    ) as producer:
        for number in range(3):
            async with producer.transaction():
                await send(service, producer, "requests", request(home, f"r-{number}"))
        await producer.begin_transaction()
        await send(service, producer, "requests", request(home, "aborted"))
        await producer.abort_transaction()
    await service.until(lambda: service.route("r-2"), "a decision")
    # The log of the requests goes on behind the last of them: a bill must not wait for what stands
    # there.
    await service.send("costs", cost(home, "aborted", 0.001))
    await service.until(service.dead_letters, "the orphan")
    assert service.reasons() == {"orphan_cost": 1}
    assert not service.route("aborted")
    assert len(service.routes(home)) == 3


async def test_headers_are_let_be(service: RunningService, home: str) -> None:
    headers = [
        ("traceparent", b"00-" + b"0" * 49),
        ("empty", b""),
        ("binary", b"\xff\x00"),
        ("twice", b"1"),
        ("twice", b"2"),
    ]
    await service.send("routers", router(home), headers=headers)
    await service.send("requests", request(home, "r-1"), headers=headers)
    await service.send("costs", cost(home, "r-1", 0.001), headers=headers)
    await service.send("rewards", reward(home, "r-1", 0.5), headers=headers)
    done = {"settled": 1, "rewards_applied": 1}
    await service.until(lambda: done.items() <= service.lambda_of(home).items(), "bill and reward")


async def test_events_without_a_key_find_their_router(service: RunningService, home: str) -> None:
    await service.send("routers", router(home))  # a compacted topic takes no record without a key
    await service.until(lambda: service.lambda_of(home), "the router")
    await service.send("requests", request(home, "r-1"), key=None)
    await service.until(lambda: service.route("r-1"), "a decision")
    await service.send("costs", cost(home, "r-1", 0.001), key=None)
    await service.send("rewards", reward(home, "r-1", 0.5), key=None)
    done = {"settled": 1, "rewards_applied": 1}
    await service.until(lambda: done.items() <= service.lambda_of(home).items(), "bill and reward")
    assert not service.dead_letters()


async def test_tombstones_are_refused_where_they_mean_nothing(
    service: RunningService, home: str
) -> None:
    for topic in ("requests", "costs", "rewards"):
        await service.send(topic, None, key=home.encode())
    await service.until(lambda: len(service.dead_letters()) == 3, "three dead letters")
    assert service.reasons() == {"malformed_event": 3}
    await service.send("routers", None, key=b"nobody")
    await service.send("routers", router(home))
    await service.until(lambda: service.lambda_of(home), "the next declaration")
    assert len(service.dead_letters()) == 3
