"""Write payloads that cannot be mapped to the dead letter topic, byte for byte: a sender of
webhooks rarely keeps a copy.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from doors.gateway.problems import Problem
from schemas.dlq import INGEST, DeadLetter
from streams.settings import Settings

NOWHERE = -1
"""Partition and offset that a dead letter gives for a payload from HTTP."""
SECONDS = 10.0
"""Seconds within which Kafka must store a dead letter."""


class Letters:
    """A producer of dead letters, made when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: AIOKafkaProducer | None = None
        self._one = asyncio.Lock()

    async def keep(self, body: bytes, error: Exception, *, router_id: str, form: str) -> None:
        """Write a payload to the dead letter topic, and return when Kafka has it.

        Raises:
            Problem: Kafka did not store it; the caller still has it.
        """
        letter = DeadLetter.of(
            error, topic=f"http:{form}", partition=NOWHERE, offset=NOWHERE, stage=INGEST
        )
        try:
            async with asyncio.timeout(SECONDS):
                producer = await self._started()
                await producer.send_and_wait(
                    self._settings.topic("dlq"),
                    body,
                    key=router_id.encode(),
                    headers=letter.headers(),
                )
        except (KafkaError, TimeoutError) as failed:
            # The next dead letter gets a new producer: this one may hang on a dead connection.
            await self.stop()
            raise Problem("undelivered", f"{error}; nor could it be kept: {failed}") from failed

    async def stop(self) -> None:
        """Disconnect."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaError, TimeoutError):
                await asyncio.wait_for(producer.stop(), SECONDS)

    async def _started(self) -> AIOKafkaProducer:
        async with self._one:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **self._settings.kafka_auth(),
                    acks="all",
                    enable_idempotence=True,
                    max_request_size=2 * self._settings.gateway_body_bytes + 2**16,
                )
                async with AsyncExitStack() as failed:
                    failed.push_async_callback(producer.stop)
                    await producer.start()
                    failed.pop_all()
                self._producer = producer
            return self._producer
