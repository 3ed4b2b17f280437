"""A yardstick of `benchmarks.stream`: aiokafka alone, JSON in and out."""

from __future__ import annotations

import asyncio
import json
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def copy() -> None:
    """Read events in batches, decode, encode and send each, and commit."""
    bootstrap = os.environ["KAFKA_BOOTSTRAP"]
    consumer = AIOKafkaConsumer(
        os.environ["ECHO_IN"],
        bootstrap_servers=bootstrap,
        group_id=os.environ["ECHO_ID"],
        auto_offset_reset="earliest",
    )
    linger_ms = int(os.environ.get("ECHO_LINGER_MS", "5"))
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=linger_ms, acks="all")
    async with consumer, producer:
        while True:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                sent = [
                    await producer.send(
                        os.environ["ECHO_OUT"],
                        json.dumps(json.loads(record.value)).encode(),
                        key=record.key,
                    )
                    for record in records
                ]
                await asyncio.gather(*sent)


if __name__ == "__main__":
    asyncio.run(copy())
