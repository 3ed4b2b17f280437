"""Open aiokafka's clients as this library needs them, and close them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from paretobandit_client.client_errors import Unreachable

Options = Mapping[str, object]
"""Arguments of aiokafka's clients, `bootstrap_servers` included."""
SOURCES, ANSWERS = ("requests", "costs", "rewards"), ("routes", "refusals")
"""Topics that the client writes, and topics that it reads."""
LARGEST_BYTES, BATCH_BYTES = 16 * 2**20, 2**17
"""Largest request to a broker, in bytes, as `pb.requests` takes it; bytes of a batch before it is
sent."""
CLOSING = 10.0
"""Longest time for closing a client, in seconds."""


async def new_producer(options: Options) -> AIOKafkaProducer:
    """Return a producer that has started."""
    producer = AIOKafkaProducer(
        **options,
        acks="all",
        enable_idempotence=True,
        linger_ms=0,  # while one batch is on its way the next one fills
        max_batch_size=BATCH_BYTES,
        max_request_size=LARGEST_BYTES,
    )
    try:
        await producer.start()
    except BaseException:
        await stop_client(producer)
        raise
    return producer


async def partitions_of(options: Options, prefix: str) -> dict[str, int]:
    """Return the partition counts of the topics, by name without the prefix. Raises Unreachable.

    All topics are asked for: asking by name would create one where the broker allows that.
    """
    admin = AIOKafkaAdminClient(**options)
    try:
        await admin.start()
        present = {
            topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()
        }
    finally:
        await admin.close()
    wanted = {name: prefix + name for name in (*SOURCES, *ANSWERS)}
    if missing := sorted(topic for topic in wanted.values() if topic not in present):
        raise Unreachable(
            f"no topic {', '.join(missing)}: `pbstream topics create` makes them, another prefix "
            "(prefix=…, or PB_PREFIX) names others, or rights are missing"
        )
    return {name: present[topic] for name, topic in wanted.items()}


async def stop_client(client: AIOKafkaProducer | AIOKafkaConsumer) -> None:
    """Stop a client, at most for `CLOSING` seconds, whatever its connection is like."""
    with suppress(KafkaError, OSError, TimeoutError):
        await asyncio.wait_for(client.stop(), CLOSING)
