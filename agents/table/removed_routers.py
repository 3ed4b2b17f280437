"""Delete the records of removed routers, a record batch at a time, across crashes and owners."""

from __future__ import annotations

from agents.interfaces import Table
from agents.table import keys

TOMBSTONE_BYTES = 40
"""Approximate bytes of a tombstone beside its key: lengths, deltas, the epoch's header."""


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
