"""Workers in memory that die and are followed by others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.producer.message_accumulator import BatchBuilder

from schemas.dlq import REASON
from streams.settings import Settings
from tests.audit_world import router
from tests.memory_worker import Left, MemoryWorker

SETTINGS = Settings(prefix="pb.", app_id="crash", partitions=1)
SMALL = Settings(prefix="pb.", app_id="crash", partitions=1, changelog_batch_bytes=2**20)
HOME = "home"
CONTEXT = [0.1, 0.2, 0.3, 0.4, 1.0]


class Killed(ConnectionError):
    """The process ended between two commits."""


class Dying(MemoryWorker):
    """A worker whose commits are measured as Kafka would, and end at some point."""

    commits_left = 10**9

    def __init__(self, settings: Settings = SMALL) -> None:
        super().__init__(settings, [0])
        self.sizes: list[int] = []

    async def _publish(self, number: int, changes: Mapping[bytes, bytes | None], epoch: int) -> int:
        if self.commits_left == 0:
            raise Killed
        self.commits_left -= 1
        batch = BatchBuilder(2**31 - 1, 0)
        for key, value in changes.items():
            batch.append(timestamp=None, key=key, value=value, headers=[("epoch", b"%d" % epoch)])
        self.sizes.append(batch.size())
        return await super()._publish(number, changes, epoch)


class Log:
    """Source events with their offsets, to be read again after a crash."""

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}

    def event(self, topic: str, event: dict[str, Any] | None, **record: Any) -> Any:
        """Write one event, and return it as it is read."""
        offset = self.offsets[topic] = self.offsets.get(topic, -1) + 1
        value = None if event is None else json.dumps({"router_id": HOME, **event}).encode()
        message = {
            "topic": f"pb.{topic}",
            "partition": 0,
            "offset": offset,
            "key": HOME.encode(),
            "value": value,
        }
        return SimpleNamespace(**{**message, "headers": [], "timestamp": 0.0, **record})


async def started() -> tuple[MemoryWorker, Log]:
    """Return a worker with one router."""
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    return worker, log


async def crash_and_read_again(
    worker: MemoryWorker, topic: str, messages: list[Any]
) -> MemoryWorker:
    """Let a worker die before its answers are delivered; the next one reads the same events
    again.
    """
    worker.mute = True
    with pytest.raises(Left):
        await worker.take(topic, messages)
    after = MemoryWorker(SETTINGS, [0])
    after.clock.now = worker.clock.now + 3600.0
    await after.start(worker)
    await after.take(topic, messages)
    await after.pass_time()
    return after


def reasons(worker: MemoryWorker) -> list[str]:
    """Return the reasons of the dead letters that were sent."""
    return [
        dict(headers)[REASON].decode() for topic, _, _, headers in worker.said if topic == "pb.dlq"
    ]


def routes(worker: MemoryWorker) -> list[dict[str, Any]]:
    """Return the decisions that were sent."""
    return [
        json.loads(value or b"null") for topic, _, value, _ in worker.said if topic == "pb.routes"
    ]
