"""The routers of one partition: engines over the durable table, unpacked when first needed, written
back once a batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from agents.context_store import Decided
from agents.parked import Parked
from agents.refusal_kinds import RouterUnreadable
from agents.table import keys
from agents.table import unpacking as stored
from agents.table.parking import Parking
from agents.table.pool_records import Lending
from agents.table.removed_routers import Leftovers
from agents.table.request_records import Requests, Table
from agents.table.watermarks import Watermarks
from router_state.changes import Changes
from router_state.config import RouterConfig
from router_state.engine import Engine
from router_state.errors import DamagedState
from router_state.events import Event
from router_state.sessions.credit import CREDITED, WHOLE
from router_state.sessions.sessions import Sessions
from router_state.state import record_bytes, state_pieces


class Shard:
    """The routers of one partition.

    A group applies events to routers and parks others, then `write` is called once, and the table
    written.

    Attributes:
        watermarks: which source events the state contains.
        lending: pools, and members of pools.
        unreadable: routers whose records can't be read, and why; they are left as they are, and all
            others go on.
        requests_seen_at: time at which the last request taken in was sent, seconds since the epoch.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.number = table.number
        self.requests_seen_at = 0.0
        self._index()

    def _index(self) -> None:
        table = self.table
        self._engines: dict[str, Engine] = {}
        # Every declared router has an entry, unpacked or not. A dict for its order: once the router
        # is unpacked, the oldest decision comes first.
        self._request_ids: dict[str, dict[str, None]] = {}
        self._changes: defaultdict[str, Changes] = defaultdict(Changes)
        self.unreadable: dict[str, str] = {}
        self._set_aside: list[str] = []
        self.watermarks = Watermarks(table)
        self.lending = Lending(table)
        # One pass over the keys; of the values only parked events are unpacked: with 10,000
        # routers the first event waits for nothing else.
        parked: list[Parked] = []
        for raw in table.records:
            kind = raw[:1]
            if kind == keys.HEAD:
                self._request_ids.setdefault(keys.split(raw)[1], {})
            elif kind == keys.REQUEST:
                _, router_id, request_id = keys.split(raw)
                self._request_ids.setdefault(router_id, {})[request_id] = None
            elif kind == keys.PARKED:
                parked.append(stored.parked(table, raw))
            elif kind in (keys.POOL, keys.MEMBER):
                self.lending.found(raw)
        self.parking = Parking(parked)
        # After the pass: a mark may come before the requests that it is about.
        self._leftovers = Leftovers(table)
        for router_id in [keys.split(raw)[1] for raw in table.records if raw[:1] == keys.GONE]:
            self._leftovers.found(router_id, list(self._request_ids.pop(router_id, ())))

    def __contains__(self, router_id: object) -> bool:
        return router_id in self._request_ids

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._request_ids))

    def __len__(self) -> int:
        return len(self._request_ids)

    def roll_back(self) -> None:
        """Return to the table as it was before the present group."""
        self.table.roll_back()
        # The table has only the place of a request that may hold a prompt; what was read of it
        # needs no second reading.
        held = {(parked.topic, parked.offset): parked.value for parked in self.parking}
        self._index()  # rebuilt from the table: engines are unpacked again when needed
        for parked in self.parking:
            value = held.get((parked.topic, parked.offset))
            if parked.value is None and value is not None:
                self.parking.add(replace(parked, value=value))

    def knows(self, router_id: str, subject: str) -> bool:
        """Tell whether a request has its decision, or any request of a session."""
        if subject.startswith(WHOLE):
            return bool(self.requests_of(router_id, subject, most=1))
        return subject in self._request_ids.get(router_id, ())

    def requests_of(self, router_id: str, subject: str, *, most: int = CREDITED) -> list[str]:
        """Return the last requests of a session that are remembered, at most so many."""
        engine = self.engine(router_id)
        sessions = None if engine is None else engine.state.having(Sessions)
        if engine is None or sessions is None:
            return []
        return list(sessions.requests_of(subject.removeprefix(WHOLE), engine.records, most=most))

    def remembered(self, router_id: str) -> list[str]:
        """Return the requests of a router that are remembered."""
        return list(self._request_ids.get(router_id, ()))

    def remembers(self, router_id: str) -> int:
        """Return how many requests of a router are remembered."""
        return len(self._request_ids.get(router_id, ()))

    def engine(
        self, router_id: str, outlines: Iterable[record_bytes.Outline] | None = None
    ) -> Engine | None:
        """Return a declared router's engine, unpacked on first use; `outlines` of its requests need
        not be read then."""
        engine = self._engines.get(router_id)
        if engine is None and router_id in self._request_ids:
            try:
                engine = self._engines[router_id] = stored.engine(
                    self.table, router_id, self._request_ids[router_id], outlines
                )
            except DamagedState as error:
                # A damaged router is set aside and not retried; its records stay, and the others go
                # on.
                self._request_ids.pop(router_id)
                self.unreadable[router_id] = str(error)
                self._set_aside.append(router_id)
        return engine

    def take_set_aside(self) -> dict[str, str]:
        """Return the routers that turned out to be unreadable since the last call, and why."""
        taken, self._set_aside = self._set_aside, []
        return {
            router_id: self.unreadable[router_id]
            for router_id in taken
            if router_id in self.unreadable
        }

    def require_readable(self, router_id: str) -> None:
        """Raise RouterUnreadable for a router that was set aside."""
        if self.engine(router_id) is None and router_id in self.unreadable:
            raise RouterUnreadable(
                "the state of this router can't be read by this worker; its records are kept as "
                "they are"
            )

    def apply(self, router_id: str, event: Event, *, now: float) -> Changes:
        """Apply an event to a declared router; what it changes is written with the batch."""
        engine = self.engine(router_id)
        if engine is None:
            raise LookupError(f"router {router_id} is not declared on partition {self.number}")
        changes = engine.apply(event, now)
        if changes:
            self._changes[router_id].add(changes)
        return changes

    def start(self, router_id: str, config: RouterConfig) -> None:
        """Add a router that was just declared. Raises InvalidConfig, CorruptSnapshot."""
        request_ids: dict[str, None] = {}
        engine = Engine.start(config, Requests(self.table, router_id, request_ids))
        self._request_ids[router_id] = request_ids
        self._engines[router_id] = engine
        self._changes[router_id].add(engine.started())

    def drop(self, router_id: str) -> None:
        """Remove a router with the next commit; `clear` deletes its remaining requests."""
        if self.unreadable.pop(router_id, None) is not None:
            self._request_ids[router_id] = dict.fromkeys(self._requests_of(router_id))
        if router_id not in self._request_ids:
            return
        # What makes the router goes at once, with a mark (`Leftovers`): without the mark the next
        # owner would take what is left of its requests for a router.
        arms = keys.key(keys.ARM, router_id)
        for raw in [raw for raw in self.table.records if raw.startswith(arms)]:
            self.table.delete(raw)
        for kind in (keys.HEAD, keys.CONFIG, keys.DECLARED):
            self.table.delete(keys.key(kind, router_id))
        self._leftovers.add(router_id, list(self._request_ids.pop(router_id)))
        self._engines.pop(router_id, None)
        self._changes.pop(router_id, None)

    def declared(self, router_id: str) -> bytes | None:
        """Return what was kept of a router's declaration, see `agents.declaring.in_force`."""
        return self.table.get(keys.key(keys.DECLARED, router_id))

    def keep_declared(self, router_id: str, packed: bytes) -> None:
        """Keep a router's declaration."""
        self.table.put(keys.key(keys.DECLARED, router_id), packed)

    @property
    def leaves(self) -> bool:
        """Tell whether records of routers that are gone are still to be deleted."""
        return bool(self._leftovers)

    def clear(self, limit: int) -> None:
        """Delete records of routers that are gone, until their tombstones fill `limit` bytes."""
        self._leftovers.clear(limit)

    def park(self, event: Parked) -> None:
        """Let an event wait, durably."""
        self.parking.add(event)
        self.table.put(keys.key(keys.PARKED, event.router_id, event.part), event.pack())

    def unpark(self, event: Parked) -> None:
        """Forget a parked event."""
        self.parking.discard(event)
        self.table.delete(keys.key(keys.PARKED, event.router_id, event.part))

    def weight(self, router_id: str) -> int:
        """Bound the bytes that an event of a router or a pool may add to a record batch, itself
        apart: the arm that it moves, or the pool's head."""
        engine, pool = self.engine(router_id), self.lending.weight(router_id)
        return pool + (0 if engine is None else stored.arm_bytes(engine.state.arms.d))

    def write(self) -> tuple[dict[str, Changes], list[Decided]]:
        """Put everything that changed into the table; return the changes by router, and the
        contexts among them, for a store outside of the table."""
        changed, self._changes = self._changes, defaultdict(Changes)
        contexts: list[Decided] = []
        for router_id, changes in changed.items():
            engine = self._engines[router_id]
            records = engine.records
            assert isinstance(records, Requests)
            # Sorted, as the order of a set of strings differs from process to process.
            names = sorted(changes.pieces)
            pieces = dict(zip(names, state_pieces.pack(engine.state, names), strict=True))
            records.write(pieces, changes.records, contexts)
        if self.lending.dirty:
            self.lending.write()
        # Last: on the log a group ends with the offsets that it contains.
        if self.watermarks.moved:
            self.watermarks.write()
        return changed, contexts

    def _requests_of(self, router_id: str) -> list[str]:
        start = keys.key(keys.REQUEST, router_id)
        return [keys.split(raw)[2] for raw in self.table.records if raw.startswith(start)]

    def is_unpacked(self, router_id: str) -> bool:
        """Tell whether a router is unpacked."""
        return router_id in self._engines

    def is_packed(self, router_id: str) -> bool:
        """Tell whether a router is declared, and not unpacked yet."""
        return router_id not in self._engines and router_id in self._request_ids
