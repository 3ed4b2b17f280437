"""Unpack routers before they are needed, a little at a time."""

from __future__ import annotations

import asyncio

from agents.table.recovered import Recovered
from agents.table.unpacking import outline
from router_state.errors import DamagedState
from router_state.state import record_bytes

AT_ONCE = 500
"""Requests of a router that are unpacked before other tasks of the event loop have their turn:
some milliseconds.
"""


def is_soon_unpacked(state: Recovered, router_id: str) -> bool:
    """Tell whether a router is unpacked, or can be unpacked quickly."""
    routers = state.routers
    return routers.is_unpacked(router_id) or routers.remembers(router_id) < AT_ONCE


async def unpack_ahead(state: Recovered, router_id: str) -> None:
    """Unpack a router without holding the event loop for long: one that remembers 100,000 requests
    takes a second."""
    if is_soon_unpacked(state, router_id):
        if not state.routers.is_unpacked(router_id):
            state.routers.engine(router_id)
            await asyncio.sleep(0)  # after a start many are unpacked in a row
        return
    found: list[record_bytes.Outline] = []
    try:
        for number, request_id in enumerate(state.routers.remembered(router_id)):
            found.append(outline(state.table, router_id, request_id))
            if number % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(0)
                if not state.routers.is_packed(router_id):
                    return  # it was unpacked or removed meanwhile
    except DamagedState:
        return  # `engine` says so
    state.routers.engine(router_id, found)
