"""Parked events: a bill or a reward that overtook its request, or a request whose router is not
declared yet.

A parked event is durable, because its source offset is committed long before the event's time is
up. A refusal that depends on the state is parked as well, until its dead letter is delivered: so
after a crash the same event is refused again and not decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from agents.interfaces import Table
from agents.parked import Parked
from agents.table import keys
from ground.messages import Message
from router_state.errors import DamagedState


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
        """Store an answered event until its answer is delivered: only after a crash it is answered
        again.
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
