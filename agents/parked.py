"""A parked source event, as the durable table keeps it.

For a request, which may hold a prompt, the table has only its place on the source topic, from which
it is read again after a crash.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from msgspec import Struct, json

from ground.messages import Message, headers_of
from ground.traces import Headers, trace_of
from router_state.packing.framing import body_of, decoded, frame
from schemas.reasons import Reason

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
        """Return it as a framed record: length of the JSON head, head, key, and the value where
        that is not private."""
        value = None if self.private else self.value
        head = json.encode(
            _Head(
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
                LEFT if self.private else _size(value),
                [(name, value.decode(errors="replace")) for name, value in self.trace],
            )
        )
        size = len(head).to_bytes(4, "little")
        return frame(size + head + (self.key or b"") + (value or b""))

    @classmethod
    def unpack(cls, data: bytes) -> Parked:
        """Invert `pack`. Raises DamagedState."""
        body = body_of(data, "a parked event")
        end = 4 + int.from_bytes(body[:4], "little")
        head = decoded(body[4:end], _Head, "a parked event")
        middle = end + (head.key_size or 0)
        return cls(
            head.topic,
            head.partition,
            head.offset,
            None if head.key_size is None else body[end:middle],
            None if head.value_size in (None, LEFT) else body[middle:],
            head.router_id,
            head.request_id,
            head.due,
            head.reason,
            head.detail,
            head.refused,
            head.value_size == LEFT,
            tuple((name, value.encode()) for name, value in head.trace),
        )


class _Head(Struct, array_like=True):
    """The JSON head of a packed event; `value_size` is `LEFT` of one whose value is private."""

    topic: str
    partition: int
    offset: int
    router_id: str
    request_id: str | None
    due: float
    reason: str
    detail: str
    refused: bool
    key_size: int | None
    value_size: int | None
    trace: list[tuple[str, str]]


def _size(part: bytes | None) -> int | None:
    return None if part is None else len(part)
