"""The boundary on a real broker: dead letters of any size, gaps that are none, readiness that waits
for the state.
"""

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from faust.types import TP

from commands.broker.wire import free_ports
from streams.faust.record_batches import RecordBatches
from streams.log.probe import LogProbe
from streams.settings import Settings
from tests.integration.counting import counting_service, until_async


@pytest.fixture
async def topic(kafka: str) -> AsyncIterator[str]:
    """Yield a new topic of one partition that takes batches of 2 MB."""
    name = f"dlq-{uuid.uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    await admin.create_topics(
        [NewTopic(name, 1, 1, topic_configs={"max.message.bytes": "2000000"})]
    )
    yield name
    await admin.close()


@pytest.fixture
async def batches(kafka: str) -> AsyncIterator[RecordBatches]:
    producer = AIOKafkaProducer(bootstrap_servers=kafka, enable_idempotence=True)
    await producer.start()
    yield RecordBatches(lambda: producer, "unused", 2**20, may_write=always)
    await producer.stop()


async def always() -> None:
    """Allow every write."""


async def only_record(kafka: str, topic: str) -> Any:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka, auto_offset_reset="earliest")
    await consumer.start()
    try:
        return await consumer.getone()
    finally:
        await consumer.stop()


@pytest.mark.parametrize(
    ("key", "value"), [(b"r1", b"word " * 1_000_000), (None, None), (b"r1", None), (None, b"{")]
)
async def test_a_dead_letter_may_have_any_size_or_none(
    kafka: str, topic: str, batches: RecordBatches, key: bytes | None, value: bytes | None
) -> None:
    await batches.send_large(
        topic, key=key, value=value, headers=[("pb.reason", b"prompt_too_large")]
    )
    record = await only_record(kafka, topic)
    assert (record.key, record.value, record.headers) == (
        key,
        value,
        (("pb.reason", b"prompt_too_large"),),
    )


async def test_a_dead_letter_beyond_its_topics_limit_comes_without_its_value(
    kafka: str, topic: str, batches: RecordBatches
) -> None:
    await batches.send_large(
        topic, key=b"r1", value=os.urandom(3_000_000), headers=[("pb.reason", b"x")]
    )
    record = await only_record(kafka, topic)
    assert (record.value, dict(record.headers)["pb.value_omitted"]) == (None, b"3000000")


async def test_offsets_that_retention_took_hold_no_records(kafka: str, topic: str) -> None:
    partition = TP(topic, 0)
    producer, admin = (
        AIOKafkaProducer(bootstrap_servers=kafka),
        AIOKafkaAdminClient(bootstrap_servers=kafka),
    )
    await producer.start()
    await admin.start()
    for number in range(6):
        await producer.send_and_wait(topic, b"%d" % number)
    await admin.delete_records({TopicPartition(*partition): RecordsToDelete(before_offset=3)})
    probe = LogProbe(Settings(bootstrap=kafka))
    assert not await probe.holds_records(partition, 0, 3)
    assert await probe.holds_records(partition, 0, 5)
    assert await probe.holds_records(partition, 3, 4)
    assert await probe.values_at(partition, [5, 1, 3, 6]) == {3: b"3", 5: b"5"}
    for client in (probe, producer):
        await client.stop()
    await admin.close()


async def test_a_worker_is_ready_once_it_owns_recovered_partitions(
    kafka: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    async with (
        counting_service(kafka, tmp_path, partitions=2) as service,
        aiohttp.ClientSession() as http,
    ):

        async def status(path: str) -> int:
            try:
                async with http.get(f"http://127.0.0.1:{port}{path}") as answer:
                    return answer.status
            except aiohttp.ClientConnectionError:
                return 0

        await service.leave_behind(20)
        service.worker(env={"PB_WEB_PORT": str(port)}, faults={"seek_lag": 2.0})
        await until_async(lambda: status("/livez"), 200)
        assert await status("/readyz") == 503
        await until_async(lambda: status("/readyz"), 200)
        async with http.get(f"http://127.0.0.1:{port}/metrics") as answer:
            metrics = await answer.text()
        assert "pb_ready 1.0" in metrics
        assert "pb_partitions 2.0" in metrics
        second = service.worker(instance="two", env={"PB_WEB_PORT": str(port)})
        assert await second.ended() != 0
        assert "give another --port" in second.tail()
