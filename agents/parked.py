"""A parked source event, as the durable table keeps it.

For a request, which may hold a prompt, the table has only its place on the source topic, from which
it is read again after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import orjson

from ground.messages import Message, headers_of
from ground.traces import Headers, trace_of
from schemas.reasons import Reason

VERSION = 1
"""First byte of what `Parked.pack` returns."""
LEFT = -1
"""Size that marks a value which was left on its topic."""


@dataclass(frozen=True, slots=True)
class Parked:
    """One waiting source event.

    Attributes:
        topic: the full name of its source topic; with `partition` and `offset` where it stands
            there.
        value: as it came, or None; of a request None where it was not read again yet, or is gone
            from its topic.
        request_id: what it waits for; None for a request that waits for its router.
        due: seconds since the epoch; then it is refused with `reason`.
        refused: whether its time is up and only its dead letter is still to be delivered.
        private: whether it may hold a prompt.
        trace: the headers of the trace it belongs to.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    router_id: str
    request_id: str | None
    due: float
    reason: str
    detail: str
    refused: bool = False
    private: bool = False
    trace: Headers = ()

    @classmethod
    def of(
        cls,
        message: Message,
        error: Exception,
        *,
        router_id: str,
        request_id: str | None = None,
        due: float = 0.0,
        private: bool = False,
    ) -> Self:
        """Return a source message as it waits, to be refused with `error` when its time is up."""
        return cls(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            key=message.key,
            value=message.value,
            router_id=router_id,
            request_id=request_id,
            due=due,
            reason=str(getattr(error, "reason", "")),
            detail=str(error),
            private=private,
            trace=trace_of(headers_of(message)),
        )

    @classmethod
    def lost(cls, topic: str, partition: int, offset: int, *, router_id: str, why: str) -> Self:
        """Return an event of which only the place is known, as refused."""
        reason = Reason.ROUTER_UNREADABLE.value
        return cls(
            topic,
            partition,
            offset,
            None,
            None,
            router_id,
            None,
            0.0,
            reason,
            f"what waited can't be read ({why})",
            True,
        )

    @property
    def part(self) -> str:
        """Return the last part of its key in the table."""
        return f"{self.topic}/{self.offset}"

    def refuse(self, error: Exception) -> Parked:
        """Return it as refused, for this reason."""
        return replace(
            self, refused=True, reason=str(getattr(error, "reason", self.reason)), detail=str(error)
        )

    def pack(self) -> bytes:
        """Return it as bytes: version, length of the JSON head, head, key, and the value or, if
        that is private, the trace. The trace of other events is beside the value's size, where
        older workers skip it."""
        value = None if self.private else self.value
        size: int | list[int | tuple[str, str] | None] | None = _size(value)
        if value is not None and self.trace:
            size = [len(value), *json_of(self.trace)]
        head = orjson.dumps(
            [
                self.topic,
                self.partition,
                self.offset,
                self.router_id,
                self.request_id,
                self.due,
                self.reason,
                self.detail,
                self.refused,
                _size(self.key),
                LEFT if self.private else size,
            ]
        )
        return (
            bytes((VERSION,))
            + len(head).to_bytes(4, "little")
            + head
            + (self.key or b"")
            + (pack_trace(self.trace) if self.private else value or b"")
        )

    @classmethod
    def unpack(cls, data: bytes) -> Parked:
        """Invert `pack`. Raises ValueError for another version, and what decoding raises for
        damage."""
        if data[0] != VERSION:
            raise ValueError(f"version {data[0]} of a parked event is not {VERSION}")
        end = 5 + int.from_bytes(data[1:5], "little")
        *fields, key_size, value_size = orjson.loads(data[5:end])
        topic, partition, offset, router_id, request_id, due, reason, detail, refused = fields
        middle = end + (key_size or 0)
        key = None if key_size is None else data[end:middle]
        value = None if value_size in (None, LEFT) else data[middle:]
        private = value_size == LEFT
        trace = unpack_trace(data[middle:]) if private else ()
        if isinstance(value_size, list):
            trace = trace_in(value_size[1:])
        return cls(
            topic,
            partition,
            offset,
            key,
            value,
            router_id,
            request_id,
            due,
            reason,
            detail,
            refused,
            private,
            trace,
        )


def pack_trace(trace: Headers) -> bytes:
    """Return a trace as bytes, none for none: a worker that knows of no traces reads what has
    none."""
    return orjson.dumps(json_of(trace)) if trace else b""


def unpack_trace(data: bytes) -> Headers:
    """Invert `pack_trace`."""
    return trace_in(orjson.loads(data)) if data else ()


def json_of(trace: Headers) -> list[tuple[str, str]]:
    """Return a trace as JSON has it."""
    return [(name, value.decode(errors="replace")) for name, value in trace]


def trace_in(pairs: Iterable[tuple[str, str]]) -> Headers:
    """Invert `json_of`."""
    return tuple((name, value.encode()) for name, value in pairs)


def _size(part: bytes | None) -> int | None:
    return None if part is None else len(part)
