"""A router's records in the durable table: unpack its engine, whose requests are a mapping over the
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import lru_cache

import numpy as np

from agents.table import Table, keys
from router_state.changes import CONFIG, HEAD
from router_state.config import Vector
from router_state.engine import Engine
from router_state.record import RequestRecord
from router_state.state import record_bytes, restoring

Ref = tuple[str, str]
"""router_id and request_id."""
Decided = tuple[Ref, float, Vector]
"""A request, the time of its decision, and its context, shape (d,)."""
PIECES = {CONFIG: keys.CONFIG, HEAD: keys.HEAD}
"""Kinds of key of the two pieces with a kind of their own; all others lie under `keys.ARM`."""


def key_of(name: bytes, piece: str) -> bytes:
    """Return the table's key of a router's piece; `name` is the part that all keys of the router
    have behind their kind.
    """
    kind = PIECES.get(piece)
    return keys.ARM + name + piece.encode() if kind is None else kind + name


class Requests(MutableMapping[str, RequestRecord]):
    """A router's requests, as a mapping for the engine. Records that the present group has changed
    stay unpacked, as does the last one that was written before.
    """

    def __init__(self, table: Table, router_id: str, request_ids: dict[str, None]) -> None:
        self._table = table
        self._router_id = router_id
        self._request_ids = request_ids
        self._unpacked: dict[str, RequestRecord] = {}
        # The part that every key of the router has behind its kind.
        self._name = keys.key(b"", router_id)

    def __contains__(self, request_id: object) -> bool:
        return request_id in self._request_ids

    def get(self, request_id: str, default: RequestRecord | None = None) -> RequestRecord | None:  # type: ignore[override]
        """Return a request's record, with its context if the table holds that."""
        return self[request_id] if request_id in self._request_ids else default

    def __getitem__(self, request_id: str) -> RequestRecord:
        unpacked = self._unpacked.get(request_id)
        if unpacked is not None:
            return unpacked
        packed = self._table.get(keys.REQUEST + self._name + request_id.encode())
        if packed is None:
            raise KeyError(request_id)
        # The record is not kept: one that is only read need not be written, and the engine assigns
        # changed ones.
        record = record_bytes.unpack_record(packed)
        context = self._table.get(keys.CONTEXT + self._name + request_id.encode())
        if context is not None:
            # A read-only view of the table's own bytes.
            record.x = np.frombuffer(context, "<f8")
        return record

    def __setitem__(self, request_id: str, record: RequestRecord) -> None:
        self._unpacked[request_id] = record
        self._request_ids.setdefault(request_id)

    def __delitem__(self, request_id: str) -> None:
        del self._request_ids[request_id]
        self._unpacked.pop(request_id, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._request_ids)

    def __len__(self) -> int:
        return len(self._request_ids)

    def all_as_read(self) -> dict[str, RequestRecord]:
        """Return all records without their contexts, for whoever reads them alone. A record that
        has not changed since the last call is the same object again.
        """
        prefix = keys.REQUEST + self._name
        return {
            one: self._unpacked.get(one) or _as_read(self._table.get(prefix + one.encode()) or b"")
            for one in self._request_ids
        }

    def write(
        self,
        pieces: Mapping[str, bytes | None],
        records: Mapping[str, RequestRecord | None],
        contexts: list[Decided],
    ) -> None:
        """Put packed pieces of the router and changed requests into the table; None deletes a
        piece or a request. A context is written once, with its decision, and added to
        `contexts`.
        """
        values = {key_of(self._name, piece): packed for piece, packed in pieces.items()}
        known, router_id = self._table.records, self._router_id
        self._unpacked = {}
        for request_id, record in records.items():
            name = self._name + request_id.encode()
            at, context_at = keys.REQUEST + name, keys.CONTEXT + name
            if record is None:
                values[at] = values[context_at] = None
                continue
            if record.x is not None and at not in known:
                values[context_at] = record.x.astype("<f8", copy=False).tobytes()
                contexts.append(((router_id, request_id), record.decided_at, record.x))
            values[at] = record_bytes.pack_record(record)
            # The last record stays unpacked, as its bill or its reward is likely to come next.
            self._unpacked = {request_id: record}
        self._table.set_all(values)


@lru_cache(maxsize=4096)
def _as_read(packed: bytes) -> RequestRecord:
    return record_bytes.unpack_record(packed)


@lru_cache(maxsize=64)
def arm_bytes(d: int) -> int:
    """Return a bound of the bytes that one changed arm of dimension d adds to a group: triangles
    and vectors of 64-bit floats.
    """
    return 12 * d * (d + 4)


def outline(table: Table, router_id: str, request_id: str) -> record_bytes.Outline:
    """Return the outline of a request, which is all that an engine needs at its start."""
    return record_bytes.outline(
        request_id, table.get(keys.key(keys.REQUEST, router_id, request_id)) or b""
    )


def unpack(
    table: Table,
    router_id: str,
    request_ids: dict[str, None],
    outlines: Iterable[record_bytes.Outline] | None = None,
) -> Engine:
    """Unpack a router.

    Args:
        request_ids: the requests that the router remembers; they are put into the order of their
            decisions.
        outlines: outlines of requests that were read before.

    Raises:
        DamagedState: a record is damaged, or of another version.
    """
    # Earlier outlines are still valid, as only an engine changes requests.
    if outlines is None:
        outlines = [outline(table, router_id, request_id) for request_id in request_ids]
    ordered = sorted(outlines, key=lambda one: one.seq)
    name = keys.key(b"", router_id)
    state = restoring.unpack(
        lambda piece: table.get(key_of(name, piece)),
        {one.request_id: one.decided_at for one in ordered if one.is_awaited},
    )
    # Requests stand in the order of their decisions, as the first decided is forgotten first. The
    # dict stays the same object, which `Routers.knows` uses.
    request_ids.clear()
    request_ids.update(dict.fromkeys(one.request_id for one in ordered))
    return Engine(state, Requests(table, router_id, request_ids))
