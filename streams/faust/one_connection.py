"""Connect to one address of Kafka once: aiokafka's clients tell only their log why they can't."""

from __future__ import annotations

import asyncio

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaError

from streams.kafka_login import KafkaAuth

WITHIN_MS = 5000
"""Milliseconds that the address has to answer."""


async def connection_error(auth: KafkaAuth) -> tuple[str, Exception | None]:
    """Return the first of the addresses, and what went wrong there, None if nothing did."""
    options = dict(auth)
    address = str(options.pop("bootstrap_servers")).split(",", maxsplit=1)[0]
    host, _, port = address.rpartition(":")
    connection = AIOKafkaConnection(
        host.strip("[]"), int(port), request_timeout_ms=WITHIN_MS, **options
    )
    try:
        await connection.connect()
    # An OSError where nothing answers, or TLS fails.
    except (KafkaError, OSError, TimeoutError) as error:
        return address, error
    finally:
        await _closed(connection)
    return address, None


async def _closed(connection: AIOKafkaConnection) -> None:
    """Close a connection and wait for its end: with TLS both sides say farewell, and a loop that
    ends before leaves the socket open.
    """
    closed = connection.close()
    if connection._protocol is not None:  # there is none where nothing answered
        await asyncio.wait([closed], timeout=WITHIN_MS / 1000)
