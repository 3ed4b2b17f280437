"""A parked source event, as stored in the durable table."""

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
        topic: full name of the source topic; `partition` and `offset` give the event's place there.
        value: the event's value; None if it has none. A request's value is also None while it was
            not read again after a crash, or if it is gone from its topic.
        request_id: the request that the event waits for; None for a request that waits for its
            router.
        due: time, seconds since the epoch, at which the event is refused with `reason`.
        refused: whether the event is refused, and only its dead letter is still to be delivered.
        private: whether the value may hold a prompt. The table then stores only the event's place
            on the source topic, from which the value is read again after a crash.
        trace: headers of the event's trace.
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
        """Return a source message in its parked form, to be refused with `error` when its time is
        up.
        """
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
        """Return an event of which only the place is known, in its refused form."""
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
        """Return the last part of the event's key in the table."""
        return f"{self.topic}/{self.offset}"

    @property
    def refusal(self) -> Refused:
        """Return the error with which the event is refused."""
        return Refused(self.reason, self.detail)

    def refuse(self, error: Exception) -> Parked:
        """Return the event in its refused form, with this error."""
        reason = str(getattr(error, "reason", self.reason))
        return structs.replace(self, refused=True, reason=reason, detail=str(error))

    def pack(self) -> bytes:
        """Return a framed record: the fields as a MessagePack array."""
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
