"""What is said while topics are read and Kafka is away."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from doors.console import reader
from streams.settings import Settings


class Unconnected:
    """A Kafka client that finds nobody, and says so ten times."""

    def __init__(self, starts: asyncio.Semaphore) -> None:
        self._starts = starts

    async def start(self) -> None:
        self._starts.release()
        for _ in range(10):
            logging.getLogger("aiokafka").error("Unable connect to node with id 1")
        raise KafkaConnectionError

    async def stop(self) -> None:
        return None


async def test_an_outage_is_one_line_however_much_the_kafka_client_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused(_: Settings) -> None:
        return None

    def nothing(name: str, record: Any, *, now: float) -> None:
        raise AssertionError

    caplog.set_level(logging.WARNING, logger="aiokafka")  # commands silence it
    starts = asyncio.Semaphore(0)
    monkeypatch.setattr(reader, "log_consumer", lambda *_, **__: Unconnected(starts))
    monkeypatch.setattr(reader, "refusal", refused)
    monkeypatch.setattr(reader, "AGAIN_AFTER", 0.0)
    topics = reader.TopicReader(Settings(bootstrap="nowhere:9092"), [["routes"]], nothing)
    topics.start()
    for _ in range(5):
        await starts.acquire()
    await topics.stop()
    logging.getLogger("aiokafka").error("of another connection")
    assert [record.getMessage() for record in caplog.records] == [
        "no Kafka answers at nowhere:9092",
        "of another connection",
    ]
