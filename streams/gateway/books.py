"""What every router's state was last, as `pb.lambda` has it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from streams.settings import Settings

log = logging.getLogger(__name__)
AGAIN_AFTER = 1.0


class Books:
    """A copy of the compacted topic, kept up to date; it is small: one record a router."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last: dict[bytes, bytes] = {}
        self._task: asyncio.Task[None] | None = None
        self.complete = asyncio.Event()

    def __getitem__(self, router_id: str) -> bytes | None:
        return self._last.get(router_id.encode())

    def start(self) -> None:
        """Begin to read, in the background."""
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _follow(self) -> None:
        while True:
            consumer = AIOKafkaConsumer(
                **self._settings.kafka_auth(),
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
            try:
                await consumer.start()
                await self._read(consumer)
            except (KafkaError, OSError) as error:
                log.warning("cannot read %s: %s", self._settings.topic("lambda"), error)
            finally:
                await consumer.stop()
            await asyncio.sleep(AGAIN_AFTER)

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        places = [
            TopicPartition(self._settings.topic("lambda"), number)
            for number in range(self._settings.partitions)
        ]
        consumer.assign(places)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(places)
        while True:
            if not self.complete.is_set() and all(
                [await consumer.position(place) >= end for place, end in ends.items()]
            ):
                self.complete.set()
            for batch in (await consumer.getmany(timeout_ms=200)).values():
                for record in batch:
                    if record.key is not None and record.value is not None:
                        self._last[record.key] = record.value
                    elif record.key is not None:
                        self._last.pop(record.key, None)
