"""Ask the log whether records lie between two offsets: a hole in delivery, or one in the log."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer

from streams.settings import Settings

ANSWER_WITHIN = 30.0


class LogProbe:
    """Look at single offsets through a consumer of its own, outside of any group, made when first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer: Any = None
        self._one_at_a_time = asyncio.Lock()

    async def holds_records(self, tp: Any, start: int, end: int) -> bool:
        """Tell whether the partition has a record with start ≤ offset < end; compaction and markers leave none."""
        async with self._one_at_a_time:
            if self._consumer is None:
                self._consumer = await self._connect()
            self._consumer.assign([tp])
            self._consumer.seek(tp, start)
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    return int((await self._consumer.getone(tp)).offset) < end
            except TimeoutError:
                # The record at `end` was delivered and is gone by now, and everything before it as well.
                return False

    async def stop(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            await self._consumer.stop()

    async def _connect(self) -> Any:
        consumer = AIOKafkaConsumer(**self._settings.kafka_auth(), enable_auto_commit=False, auto_offset_reset="earliest")
        await consumer.start()
        return consumer
