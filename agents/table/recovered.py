"""The state of one partition, which its owner recovers from the durable table, and the offsets of
the source events that the state contains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import orjson
from msgspec import structs

from agents.table import Table, keys
from agents.table.family_records import Families
from agents.table.own_routers import Routers
from agents.table.parking import Parking
from agents.table.pool_records import Pools
from agents.table.router_records import Decided, outline
from ground.messages import Record
from router_state.changes import Changes
from router_state.errors import DamagedState
from router_state.packing.framing import body_of, decoded, frame
from router_state.state import record_bytes

AT_ONCE = 500
"""Requests of a router that are unpacked before other tasks of the event loop have their turn:
some milliseconds.
"""


class ForeignState(Exception):
    """The state belongs to another service: it contains events of other topics."""

    reason = "foreign_state"
    retriable = False


class Watermarks:
    """The last offset of each source topic that a partition's state contains.

    Attributes:
        offsets: last offsets by the topic's full name. A group's offsets are set when all its
            events of a topic are applied.
        moved: whether the present group has moved an offset.
        unreadable: reason why the stored offsets can't be read; empty: they can. Events that were
            not committed are then applied again, which changes nothing if their request's record
            contains them.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self.index()

    def index(self) -> None:
        """Read the offsets from the table."""
        self.offsets: dict[str, int] = {}
        self.moved = False
        self.unreadable = ""
        try:
            self.offsets = unpack_offsets(self._table.get(keys.WATERMARKS))
        except DamagedState as error:
            self.unreadable = str(error)

    def of(self, topic: str) -> int:
        """Return the last contained offset of a topic; −1 before the first."""
        return self.offsets.get(topic, -1)

    def both(self, one: str, other: str) -> tuple[int, int]:
        """Return the last contained offsets of two topics; −1 before the first."""
        return self.offsets.get(one, -1), self.offsets.get(other, -1)

    def is_applied(self, topic: str, offset: int) -> bool:
        """Tell whether the state already contains this source event."""
        return self.of(topic) >= offset

    def advance(self, topic: str, offset: int) -> None:
        """Note, in the group that changes the state, that the state contains all events of a
        source topic up to this offset.
        """
        # After a recovery older events come again, but a watermark never goes back.
        if offset > self.of(topic):
            self.offsets[topic] = offset
            self.moved = True

    def write(self) -> None:
        """Write the offsets into the table."""
        # The offsets are in the same record batch as the state, so an event is contained if and
        # only if its offset is.
        self._table.put(keys.WATERMARKS, frame(orjson.dumps(self.offsets)))
        self.moved = False

    def require_topics(self, topics: Collection[str]) -> None:
        """Raise ForeignState if the state contains events of other topics than these."""
        if foreign := sorted(self.offsets.keys() - set(topics)):
            raise ForeignState(
                f"partition {self._table.number} of the changelog has the state of "
                f"{', '.join(foreign)}: look at PB_APP_ID"
            )


def unpack_offsets(kept: bytes | None) -> dict[str, int]:
    """Return the offsets in a record, by topic; none if there is no record. Raises
    DamagedState.
    """
    if kept is None:
        return {}
    return decoded(body_of(kept, "watermarks"), dict[str, int], "watermarks")


class Recovered:
    """The state of one partition. A group changes its parts; then `write` is called once, and the
    table is written.

    Attributes:
        watermarks: offsets of the source events that the state contains.
        routers: routers of this partition.
        pools: pools, and members of pools.
        families: families, and the reports that are due from their members.
        parking: events that wait.
    """

    def __init__(self, table: Table) -> None:
        self.table, self.number = table, table.number
        # One pass over the keys.
        found = keys.by_kind(table.records)
        self.watermarks = Watermarks(table)
        self.routers, self.parking = Routers(table, found), Parking(table, found)
        self.pools = Pools(table, found)
        self.families = Families(table, found)

    def contain(self, messages: Sequence[Record]) -> None:
        """Note that the state contains these events of one topic, and all events before them."""
        last = messages[-1]
        self.watermarks.advance(last.topic, last.offset)

    def roll_back(self) -> None:
        """Return to the table as it was before the present group."""
        self.table.roll_back()
        # The table stores only the place of a request that may hold a prompt. A value that was
        # read already is kept, and need not be read again.
        values = {(parked.topic, parked.offset): parked.value for parked in self.parking}
        # Engines are unpacked again when needed.
        found = keys.by_kind(self.table.records)
        self.watermarks.index()
        for part in (self.routers, self.parking, self.pools, self.families):
            part.index(found)
        for parked in self.parking:
            value = values.get((parked.topic, parked.offset))
            if parked.value is None and value is not None:
                self.parking.add(structs.replace(parked, value=value))

    def write(self) -> list[Decided]:
        """Put all changes into the table; return the new contexts for the external store."""
        changed, contexts = self.routers.write()
        if self.pools.dirty:
            self.pools.write()
        if self.families.dirty:
            self.families.write()
        # Offsets are written last: on the log a group ends with the offsets that it contains.
        if self.watermarks.moved:
            self.watermarks.write()
        self.written(changed)
        return contexts

    def written(self, changed: dict[str, Changes]) -> None:
        """Note a group's changes of routers, before they are durable."""

    def is_soon_unpacked(self, router_id: str) -> bool:
        """Tell whether a router is unpacked, or can be unpacked quickly."""
        routers = self.routers
        return routers.is_unpacked(router_id) or routers.remembers(router_id) < AT_ONCE

    async def unpack_ahead(self, router_id: str) -> None:
        """Unpack a router without holding the event loop for long: a router that remembers 100,000
        requests takes a second."""
        if self.is_soon_unpacked(router_id):
            if not self.routers.is_unpacked(router_id):
                self.routers.engine(router_id)
                await asyncio.sleep(0)  # after a start many are unpacked in a row
            return
        found: list[record_bytes.Outline] = []
        try:
            for number, request_id in enumerate(self.routers.remembered(router_id)):
                found.append(outline(self.table, router_id, request_id))
                if number % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
                    if not self.routers.is_packed(router_id):
                        return  # it was unpacked or removed meanwhile
        except DamagedState:
            return  # `engine` says so
        self.routers.engine(router_id, found)
