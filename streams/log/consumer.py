"""Read committed records of the log outside of any group."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer

from streams.faust.unreadable import place_what_is_unreadable
from streams.settings import Settings

READ_COMMITTED = "read_committed"
"""Isolation level that skips what an aborted transaction has written."""


def log_consumer(settings: Settings, **options: object) -> AIOKafkaConsumer:
    """Return a consumer, not yet started, that commits nothing and sees only committed records."""
    place_what_is_unreadable()
    given = {
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": READ_COMMITTED,
        **options,
    }
    return AIOKafkaConsumer(**settings.kafka_auth(), **given)
