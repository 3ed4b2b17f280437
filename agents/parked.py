"""A parked source event, as the durable table keeps it."""

from __future__ import annotations

from typing import Self

import msgspec
from msgspec import structs

from agents.refusal_kinds import Refused
from ground.messages import Message, headers_of
from ground.traces import Headers, trace_of
from router_state.errors import DamagedState
from router_state.packing.framing import body_of, frame
from schemas.reasons import Reason


class Parked(msgspec.Struct, frozen=True, array_like=True):
    """One waiting source event.

    Attributes:
        topic: the full name of its source topic; with `partition` and `offset` where it stands
            there.
        value: as it came, or None; of a request None where it was not read again yet, or is gone
            from its topic.
        request_id: what it waits for; None for a request that waits for its router.
        due: seconds since the epoch; then it is refused with `reason`.
        refused: whether its time is up and only its dead letter is still to be delivered.
        private: whether it may hold a prompt. Then the table has only its place on the source
            topic, from which it is read again after a crash.
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
        return cls(
            topic=topic,
            partition=partition,
            offset=offset,
            key=None,
            value=None,
            router_id=router_id,
            request_id=None,
            due=0.0,
            reason=Reason.ROUTER_UNREADABLE.value,
            detail=f"what waited can't be read ({why})",
            refused=True,
        )

    @property
    def part(self) -> str:
        """Return the last part of its key in the table."""
        return f"{self.topic}/{self.offset}"

    @property
    def refusal(self) -> Refused:
        """Return the error with which it is refused."""
        return Refused(self.reason, self.detail)

    def refuse(self, error: Exception) -> Parked:
        """Return it as refused, for this reason."""
        reason = str(getattr(error, "reason", self.reason))
        return structs.replace(self, refused=True, reason=reason, detail=str(error))

    def pack(self) -> bytes:
        """Return it as a framed record: its fields as a MessagePack array."""
        stored = structs.replace(self, value=None) if self.private else self
        return frame(msgspec.msgpack.encode(stored))

    @classmethod
    def unpack(cls, data: bytes) -> Parked:
        """Invert `pack`. Raises DamagedState."""
        body = body_of(data, "a parked event")
        try:
            return msgspec.msgpack.decode(body, type=cls)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DamagedState(f"a parked event: {error}") from None
