"""Protocols of a Kafka message, independent of the client library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ground.traces import Headers, trace_of


class Raw(Protocol):
    """An event as bytes."""

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


class Placed(Protocol):
    """A record's place: topic, partition and offset."""

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def offset(self) -> int: ...


class Message(Raw, Placed, Protocol):
    """A record of a source topic, or a parked event that waits for its decision: bytes and
    place."""


class Record(Message, Protocol):
    """A record as Kafka's client hands it over.

    Attributes:
        timestamp: milliseconds since the epoch.
    """

    @property
    def timestamp(self) -> int: ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


def key_text(message: Raw) -> str:
    """Return a message's key as text: the router or the pool that it is about."""
    return (message.key or b"").decode(errors="replace")


def headers_of(message: Message) -> list[tuple[str, bytes]]:
    """Return a message's headers as pairs; a parked message has only those of its trace."""
    headers = getattr(message, "headers", None) or ()
    return list(headers.items() if isinstance(headers, dict) else headers)


def trace_of_message(message: Message) -> Headers:
    """Return the trace headers of a source message or of a parked one, to be passed on."""
    parked: Headers | None = getattr(message, "trace", None)
    if parked is not None:
        return parked
    headers = headers_of(message)
    return trace_of(headers) if headers else ()
