"""Unpack routers from the durable table."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from agents.interfaces import Table
from agents.table import keys
from agents.table.request_records import Requests, key_of
from router_state.engine import Engine
from router_state.state import record_bytes, restoring


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
