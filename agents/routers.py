"""The engines of one partition's routers, unpacked from the durable table when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from agents import stored
from agents.kept import DAMAGE
from agents.refusals import RouterUnreadable
from agents.requests import Table
from router_state.conversing import requests_of
from router_state.engine import Engine
from router_state.sessions import WHOLE
from router_state.state import record_bytes

WARM_AT_ONCE = 500
"""Requests of a router that are unpacked before others of the event loop have their turn: some
milliseconds."""


class Routers:
    """The declared routers of one partition.

    Attributes:
        unreadable: routers whose records can't be read, and why; they are left as they are, and all
            others go on.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.number = table.number
        self.forget()

    def forget(self) -> None:
        """Know of no router: the table is to be looked through again."""
        self._engines: dict[str, Engine] = {}
        # Every declared router has an entry, unpacked or not. A dict for its order: once the router
        # is unpacked, the oldest decision comes first.
        self._request_ids: dict[str, dict[str, None]] = {}
        self._outlines: dict[str, list[record_bytes.Outline]] = {}
        self.unreadable: dict[str, str] = {}
        self._set_aside: list[str] = []

    def __contains__(self, router_id: object) -> bool:
        return router_id in self._request_ids

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._request_ids))

    def __len__(self) -> int:
        return len(self._request_ids)

    def knows(self, router_id: str, subject: str) -> bool:
        """Tell whether a request has its decision, or any request of a session."""
        if subject.startswith(WHOLE):
            return bool(self.requests_of(router_id, subject))
        return subject in self._request_ids.get(router_id, ())

    def requests_of(self, router_id: str, subject: str) -> list[str]:
        """Return the requests of a session that are remembered."""
        engine = self.engine(router_id)
        name = subject.removeprefix(WHOLE)
        return [] if engine is None else requests_of(engine.state, engine.records, name)

    def remembers(self, router_id: str) -> int:
        """Return how many requests of a router are remembered."""
        return len(self._request_ids.get(router_id, ()))

    def engine(self, router_id: str) -> Engine | None:
        """Return a declared router's engine, unpacked on first use."""
        engine = self._engines.get(router_id)
        if engine is None and router_id in self._request_ids:
            try:
                engine = self._engines[router_id] = stored.engine(
                    self.table,
                    router_id,
                    self._request_ids[router_id],
                    self._outlines.get(router_id),
                )
            except DAMAGE as error:
                # A damaged router is set aside and not retried; its records stay, and the others go
                # on.
                self._request_ids.pop(router_id)
                self.unreadable[router_id] = f"{type(error).__name__}: {error}"
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

    def is_unpacked(self, router_id: str) -> bool:
        """Tell whether a router is unpacked."""
        return router_id in self._engines

    def is_packed(self, router_id: str) -> bool:
        """Tell whether a router is declared, and not unpacked yet."""
        return router_id not in self._engines and router_id in self._request_ids

    def is_warm(self, router_id: str) -> bool:
        """Tell whether a router is unpacked, or soon would be."""
        return (
            router_id in self._engines or len(self._request_ids.get(router_id, ())) < WARM_AT_ONCE
        )

    async def warm(self, router_id: str) -> None:
        """Unpack a router without holding the event loop for long: one that remembers 100,000
        requests takes a second."""
        if self.is_warm(router_id):
            if router_id not in self._engines:
                self.engine(router_id)
                await asyncio.sleep(0)  # after a start many are unpacked in a row
            return
        found: list[record_bytes.Outline] = []
        try:
            for number, request_id in enumerate(list(self._request_ids[router_id])):
                found.append(stored.outline(self.table, router_id, request_id))
                if number % WARM_AT_ONCE == WARM_AT_ONCE - 1:
                    await asyncio.sleep(0)
                    if router_id in self._engines or router_id not in self._request_ids:
                        return  # it was unpacked or removed meanwhile
        except DAMAGE:
            return  # `engine` says so
        self._outlines[router_id] = found
        try:
            self.engine(router_id)
        finally:
            self._outlines.pop(router_id, None)
