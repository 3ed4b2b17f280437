"""Unpack routers before they are needed, a little at a time."""

from __future__ import annotations

import asyncio

from agents.table import unpacking as stored
from agents.table.own_routers import Shard
from router_state.errors import DamagedState
from router_state.state import record_bytes

WARM_AT_ONCE = 500
"""Requests of a router that are unpacked before others of the event loop have their turn: some
milliseconds."""


def is_warm(shard: Shard, router_id: str) -> bool:
    """Tell whether a router is unpacked, or soon would be."""
    return shard.is_unpacked(router_id) or shard.remembers(router_id) < WARM_AT_ONCE


async def warm(shard: Shard, router_id: str) -> None:
    """Unpack a router without holding the event loop for long: one that remembers 100,000 requests
    takes a second."""
    if is_warm(shard, router_id):
        if not shard.is_unpacked(router_id):
            shard.engine(router_id)
            await asyncio.sleep(0)  # after a start many are unpacked in a row
        return
    found: list[record_bytes.Outline] = []
    try:
        for number, request_id in enumerate(shard.remembered(router_id)):
            found.append(stored.outline(shard.table, router_id, request_id))
            if number % WARM_AT_ONCE == WARM_AT_ONCE - 1:
                await asyncio.sleep(0)
                if not shard.is_packed(router_id):
                    return  # it was unpacked or removed meanwhile
    except DamagedState:
        return  # `engine` says so
    shard.engine(router_id, found)
