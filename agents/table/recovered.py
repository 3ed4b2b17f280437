"""The state of one partition, which its owner recovers from the durable table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import structs

from agents.interfaces import Decided, Table
from agents.table import keys
from agents.table.family_records import Families
from agents.table.own_routers import Routers
from agents.table.parking import Parking
from agents.table.pool_records import Pools
from agents.table.router_records import outline
from agents.table.watermarks import Watermarks
from ground.messages import Record
from router_state.changes import Changes
from router_state.errors import DamagedState
from router_state.state import record_bytes

AT_ONCE = 500
"""Requests of a router that are unpacked before other tasks of the event loop have their turn:
some milliseconds.
"""


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
