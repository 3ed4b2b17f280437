"""Kafka and Redis from their images, through testcontainers."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from commands.broker.container import docker_kafka


async def test_the_official_kafka_image_takes_and_gives_records() -> None:
    with docker_kafka() as bootstrap:
        topic = f"t-{uuid4().hex}"
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 2, 1)])
        await admin.close()
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
            await producer.send_and_wait(topic, b"value", key=b"key")
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest"
        )
        async with consumer:
            record = await asyncio.wait_for(consumer.getone(), 30)
        assert (record.key, record.value) == (b"key", b"value")


def test_redis_keeps_a_value_for_its_time_to_live() -> None:
    # Docker's client takes a second of every process that collects tests.
    from testcontainers.community.redis import RedisContainer

    with RedisContainer("redis:7.4-alpine") as container, container.get_client() as client:
        client.set("context", b"\x00\x01", ex=100)
        assert client.get("context") == b"\x00\x01"
        assert 0 < client.ttl("context") <= 100
