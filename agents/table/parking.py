"""Parked events: a bill or a reward that overtook its request, or a request whose router is not
declared yet.

A parked event is durable, because its source offset is committed long before the event's time is
up. A refusal that depends on the state is parked as well, until its dead letter is delivered: so
after a crash the same event is refused again and not decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Self

import msgspec
from msgspec import structs

from agents.refusal_kinds import Refused
from agents.table import Table, keys
from ground.messages import Message, headers_of
from ground.traces import Headers, trace_of
from router_state.errors import DamagedState
from router_state.packing.framing import body_of, frame
from schemas.reasons import Reason


class Parked(msgspec.Struct, frozen=True, array_like=True):
    """One waiting source event.

    Attributes:
        topic: full name of the source topic; `partition` and `offset` give the event's place there.
        value: the event's value; None if it has none. A request's value is also None until it is
            read again after a crash, or if it is gone from its topic.
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
        """Return the refused form of an event whose key and value are lost: its router, topic,
        partition and offset are all that is known.
        """
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


class Parking:
    """The parked events of one partition: an index over the table, which stores them.

    Attributes:
        waiting: waiting events by router and request.
    """

    def __init__(self, table: Table, found: Mapping[bytes, list[bytes]]) -> None:
        self._table = table
        self.index(found)

    def index(self, found: Mapping[bytes, list[bytes]]) -> None:
        """Index the parked events by the keys of the table, `found` by kind."""
        self._events: dict[tuple[str, int], Parked] = {}
        self._answered: set[tuple[str, int]] = set()
        self.waiting: dict[tuple[str, str | None], dict[tuple[str, int], Parked]] = defaultdict(
            dict
        )
        for raw in found.get(keys.PARKED, ()):
            self.add(_read(self._table, raw))

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Parked]:
        return iter(list(self._events.values()))

    def is_waiting(self, event: Message) -> bool:
        """Tell whether an event still waits: it was neither forgotten nor answered nor refused."""
        at = event.topic, event.offset
        found = self._events.get(at)
        return found is not None and not found.refused and at not in self._answered

    def park(self, event: Parked) -> None:
        """Store an event that waits, or a refused event until its dead letter is delivered."""
        self.add(event)
        self._table.put(keys.key(keys.PARKED, event.router_id, event.part), event.pack())

    def unpark(self, event: Parked) -> None:
        """Forget a parked event."""
        self.hide(event)
        self._table.delete(keys.key(keys.PARKED, event.router_id, event.part))

    def add(self, event: Parked) -> None:
        """Put an event of the table into the index."""
        # The same event may come again after a crash, or with its value once that was read again.
        self.hide(event)
        self._events[event.topic, event.offset] = event
        if not event.refused:
            self.waiting[event.router_id, event.request_id][event.topic, event.offset] = event

    def hide(self, event: Parked) -> None:
        """Remove an event from the index, if it is there."""
        if self.is_waiting(event):
            self._wait_no_more(event)
        self._events.pop((event.topic, event.offset), None)
        self._answered.discard((event.topic, event.offset))

    def answer(self, event: Parked) -> None:
        """Take an answered event out of the index. It stays in the table until its answer is
        delivered, so that the next owner answers it after a crash.
        """
        # The event stays in the table until the answer is delivered, and leaves the index at once:
        # a second look in between would answer it twice.
        if self.is_waiting(event):
            self._wait_no_more(event)
            self._answered.add((event.topic, event.offset))

    def _wait_no_more(self, event: Parked) -> None:
        at = event.topic, event.offset
        found = self._events[at]
        waiting = self.waiting[found.router_id, found.request_id]
        del waiting[at]
        if not waiting:
            del self.waiting[found.router_id, found.request_id]

    def waiting_for(self, router_id: str, request_id: str | None) -> list[Parked]:
        """Return the events that wait for this request or, with None, for this router, ordered by
        topic and offset."""
        return sorted(self.waiting.get((router_id, request_id), {}).values(), key=_place)

    def due(self, now: float) -> list[Parked]:
        """Return the events whose time is up, by topic, then by offset."""
        return sorted(
            (
                event
                for event in self._events.values()
                if event.due <= now and self.is_waiting(event)
            ),
            key=_place,
        )


def _place(event: Parked) -> tuple[str, int]:
    return event.topic, event.offset


def _read(table: Table, raw: bytes) -> Parked:
    """Return a parked event; an unreadable one is returned in its refused form, with the ids in
    its key.
    """
    try:
        return Parked.unpack(table.records[raw])
    except DamagedState as error:
        _, router_id, part = keys.split(raw)
        topic, _, offset = part.rpartition("/")
        if not offset.isdecimal():
            raise DamagedState(f"the place of a parked event: {part}") from None
        return Parked.lost(topic, table.number, int(offset), router_id=router_id, why=str(error))
