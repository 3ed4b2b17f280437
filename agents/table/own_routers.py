"""The routers of one partition: engines over the durable table, unpacked when first needed,
written back once per group. The records of a removed router are deleted a record batch at a time,
across crashes and owners.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from agents.refusal_kinds import RouterUnreadable
from agents.table import Table, keys
from agents.table.router_records import Decided, Requests, arm_bytes, unpack
from router_state.changes import Changes
from router_state.config import RouterConfig
from router_state.engine import Engine
from router_state.errors import DamagedState
from router_state.events import Event
from router_state.sessions.credit import CREDITED, WHOLE
from router_state.sessions.sessions import Sessions
from router_state.state import record_bytes, state_pieces

TOMBSTONE_BYTES = 40
"""Approximate bytes of a tombstone beside its key: lengths, deltas, the epoch's header."""


class Routers:
    """The routers of one partition. A group applies events to them, then `write` is called once.

    Attributes:
        unreadable: routers whose records can't be read, and the reason. Their records stay, and all
            other routers go on.
        removed: removed routers of which records are left.
    """

    def __init__(self, table: Table, found: Mapping[bytes, list[bytes]]) -> None:
        self._table = table
        self.index(found)

    def index(self, found: Mapping[bytes, list[bytes]]) -> None:
        """Index the routers by the keys of the table, `found` by kind. No router is unpacked yet,
        so the first event does not wait for 10,000 of them.
        """
        self._engines: dict[str, Engine] = {}
        # Every declared router has an entry, unpacked or not. The entry is a dict for its order:
        # once the router is unpacked, the oldest decision comes first.
        self._request_ids: dict[str, dict[str, None]] = {}
        self._changes: defaultdict[str, Changes] = defaultdict(Changes)
        self.unreadable: dict[str, str] = {}
        self._set_aside: list[str] = []
        for raw in found.get(keys.HEAD, ()):
            self._request_ids[keys.split(raw)[1]] = {}
        for raw in found.get(keys.REQUEST, ()):
            _, router_id, request_id = keys.split(raw)
            self._request_ids.setdefault(router_id, {})[request_id] = None
        self.removed = RemovedRouters(self._table)
        for raw in found.get(keys.GONE, ()):
            router_id = keys.split(raw)[1]
            self.removed.found(router_id, list(self._request_ids.pop(router_id, ())))

    def __contains__(self, router_id: object) -> bool:
        return router_id in self._request_ids

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._request_ids))

    def __len__(self) -> int:
        return len(self._request_ids)

    def knows(self, router_id: str, subject: str) -> bool:
        """Tell whether a request, or any request of a session, is decided."""
        if subject.startswith(WHOLE):
            return bool(self.requests_of(router_id, subject, most=1))
        return subject in self._request_ids.get(router_id, ())

    def requests_of(self, router_id: str, subject: str, *, most: int = CREDITED) -> list[str]:
        """Return the latest remembered requests of a session, at most `most`."""
        engine = self.engine(router_id)
        sessions = None if engine is None else engine.state.having(Sessions)
        if engine is None or sessions is None:
            return []
        return list(sessions.requests_of(subject.removeprefix(WHOLE), engine.records, most=most))

    def remembered(self, router_id: str) -> list[str]:
        """Return the remembered requests of a router."""
        return list(self._request_ids.get(router_id, ()))

    def remembers(self, router_id: str) -> int:
        """Return the number of remembered requests of a router."""
        return len(self._request_ids.get(router_id, ()))

    def engine(
        self, router_id: str, outlines: Iterable[record_bytes.Outline] | None = None
    ) -> Engine | None:
        """Return a declared router's engine, unpacked on first use. `outlines`: outlines of its
        requests that were read before.
        """
        engine = self._engines.get(router_id)
        if engine is None and router_id in self._request_ids:
            try:
                engine = self._engines[router_id] = unpack(
                    self._table, router_id, self._request_ids[router_id], outlines
                )
            except DamagedState as error:
                # A damaged router is set aside and not tried again; its records stay, and the
                # other routers go on.
                self._request_ids.pop(router_id)
                self.unreadable[router_id] = str(error)
                self._set_aside.append(router_id)
        return engine

    def take_set_aside(self) -> dict[str, str]:
        """Return the routers that were found unreadable since the last call, and the reasons."""
        taken, self._set_aside = self._set_aside, []
        return {
            router_id: self.unreadable[router_id]
            for router_id in taken
            if router_id in self.unreadable
        }

    def why_unreadable(self, router_id: str) -> RouterUnreadable | None:
        """Return the refusal of events of a router that was set aside; None for all other
        routers.
        """
        if self.engine(router_id) is not None or router_id not in self.unreadable:
            return None
        return RouterUnreadable(
            "the state of this router can't be read by this worker; its records are kept as they "
            "are"
        )

    def require_readable(self, router_id: str) -> None:
        """Raise RouterUnreadable for a router that was set aside."""
        if (why := self.why_unreadable(router_id)) is not None:
            raise why

    def apply(self, router_id: str, event: Event, *, now: float) -> Changes:
        """Apply an event to a declared router; the changes are written with the group."""
        engine = self.engine(router_id)
        if engine is None:
            raise LookupError(f"router {router_id} is not declared here")
        changes = engine.apply(event, now)
        if changes:
            self._changes[router_id].add(changes)
        return changes

    def start(self, router_id: str, config: RouterConfig) -> None:
        """Add a router that was just declared. Raises InvalidConfig, CorruptSnapshot."""
        request_ids: dict[str, None] = {}
        engine = Engine.start(config, Requests(self._table, router_id, request_ids))
        self._request_ids[router_id] = request_ids
        self._engines[router_id] = engine
        self._changes[router_id].add(engine.started())

    def drop(self, router_id: str) -> None:
        """Remove a router with the present group; `removed` lists its remaining requests."""
        records = self._table.records
        if self.unreadable.pop(router_id, None) is not None:
            start = keys.key(keys.REQUEST, router_id)
            left = [keys.split(raw)[2] for raw in records if raw.startswith(start)]
            self._request_ids[router_id] = dict.fromkeys(left)
        if router_id not in self._request_ids:
            return
        # The pieces of the router are deleted at once, and a mark is written (`RemovedRouters`):
        # without the mark the next owner would take the remaining requests for those of a router.
        arms = keys.key(keys.ARM, router_id)
        for raw in [raw for raw in records if raw.startswith(arms)]:
            self._table.delete(raw)
        for kind in (keys.HEAD, keys.CONFIG, keys.DECLARED):
            self._table.delete(keys.key(kind, router_id))
        self.removed.add(router_id, list(self._request_ids.pop(router_id)))
        self._engines.pop(router_id, None)
        self._changes.pop(router_id, None)

    def weight(self, router_id: str) -> int | None:
        """Return a bound of the bytes that an event adds to a record batch beside the event's own:
        those of the changed arm. None: the router is not unpacked yet.
        """
        engine = self._engines.get(router_id)
        if engine is None:
            return None if router_id in self._request_ids else 0
        return arm_bytes(engine.state.arms.d)

    def write(self) -> tuple[dict[str, Changes], list[Decided]]:
        """Put all changes into the table; return the changes by router, and the new contexts for
        the external store.
        """
        changed, self._changes = self._changes, defaultdict(Changes)
        contexts: list[Decided] = []
        for router_id, changes in changed.items():
            engine = self._engines[router_id]
            records = engine.records
            assert isinstance(records, Requests)
            # Pieces are sorted, as the order of a set of strings differs from process to process.
            names = sorted(changes.pieces)
            pieces = dict(zip(names, state_pieces.pack(engine.state, names), strict=True))
            records.write(pieces, changes.records, contexts)
        return changed, contexts

    def is_unpacked(self, router_id: str) -> bool:
        """Tell whether a router is unpacked."""
        return router_id in self._engines

    def is_packed(self, router_id: str) -> bool:
        """Tell whether a router is declared and not unpacked yet."""
        return router_id not in self._engines and router_id in self._request_ids


class RemovedRouters:
    """Removed routers whose records are still to be deleted.

    Tombstones of a router with 100,000 requests exceed a record batch. So the group that removes
    the router writes a mark into the table. By this mark the next owner finds the records that a
    crash has left.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._requests: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._requests)

    def found(self, router_id: str, request_ids: list[str]) -> None:
        """Note the remaining requests of a marked router, found by a recovery."""
        self._requests[router_id] = request_ids

    def add(self, router_id: str, request_ids: list[str]) -> None:
        """Mark a router that is being removed, and note its remaining requests."""
        self._table.put(keys.key(keys.GONE, router_id), b"1")
        self._requests[router_id] = request_ids

    def clear(self, limit: int) -> None:
        """Delete records until their tombstones fill `limit` bytes."""
        while self._requests and limit > 0:
            router_id, request_ids = next(iter(self._requests.items()))
            while request_ids and limit > 0:
                request_id = request_ids.pop()
                for kind in (keys.REQUEST, keys.CONTEXT):
                    raw = keys.key(kind, router_id, request_id)
                    self._table.delete(raw)
                    limit -= len(raw) + TOMBSTONE_BYTES
            if not request_ids:
                # The mark is deleted in the group of the last tombstone, so that it outlives the
                # records.
                del self._requests[router_id]
                self._table.delete(keys.key(keys.GONE, router_id))
