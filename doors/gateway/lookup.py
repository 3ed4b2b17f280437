"""Find a decision again: in memory, or on the log."""

from __future__ import annotations

import asyncio

from aiokafka.errors import KafkaError

from doors.console.bus import open_bus
from doors.console.failures import Failure
from doors.console.found_records import may_name
from doors.gateway.problems import Problem
from doors.gateway.rate_limits import Recent
from schemas import MalformedEvent, RouteDecided, decode
from streams.settings import Settings

SEARCHES_AT_ONCE = 4
"""Most searches of the log at a time; further ones wait."""


class Lookup:
    """A search for decisions by request id: in memory first, then in the last `search` records of a
    partition.
    """

    def __init__(self, settings: Settings, recent: Recent) -> None:
        self._settings = settings
        self._recent = recent
        self._limit = settings.gateway_search
        self._searches = asyncio.Semaphore(SEARCHES_AT_ONCE)

    async def find(self, router_id: str, request_id: str) -> RouteDecided | None:
        """Return a request's decision, or None. Raises Problem where Kafka cannot be read."""
        value = self._recent.get((router_id, request_id))
        if value is not None:
            return decode(RouteDecided, value)
        try:
            # Each search has its own connection: searches are rare, and one that hangs blocks no
            # other.
            async with self._searches, open_bus(self._settings, "routes") as bus:
                return await self._search(bus, router_id, request_id)
        except (KafkaError, Failure) as error:
            raise Problem("undelivered", str(error)) from error

    async def _search(self, bus: object, router_id: str, request_id: str) -> RouteDecided | None:
        repeated = None
        async for record in bus.backwards("routes", router_id, limit=self._limit):  # type: ignore[attr-defined]
            if record.key != router_id.encode() or not may_name(record.value, request_id):
                continue
            try:
                decision = decode(RouteDecided, record.value)
            except MalformedEvent:
                continue
            if (decision.router_id, decision.request_id) == (router_id, request_id):
                if not decision.repeat:
                    return decision
                # It may lack the candidates; the first answer may be beyond the limit.
                repeated = decision
        return repeated
