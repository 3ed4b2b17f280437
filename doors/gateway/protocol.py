"""Guard HTTP connections against slow and greedy clients: a request's head is bounded in time and
size, and the number of connections is limited.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""Seconds within which a client must send the head of a request."""
HEAD_BYTES = 65_536
"""Largest head of a request, as in uvicorn's h11 protocol."""
MAX_CONNECTIONS = 10_000
"""Most connections. When another one opens, the connection that has owed its request's head for
longest is closed, else the one that has been idle for longest."""
KEEP_ALIVE = 75
"""Seconds for which an idle connection is kept. Clients and load balancers keep theirs for 15 to
60; closing later than they do means that no request arrives on a closing connection."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits; by itself it waits for ever for a slow head and keeps one of
    any size.
    """

    head_seconds = HEAD_SECONDS
    max_connections = MAX_CONNECTIONS
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer for a request's head, and close another connection if there are too
        many."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._owe()
        if len(self.connections) > self.max_connections:
            owing, idle = self._waiting("owing"), self._waiting("idle")
            # There is always one that owes its head: the new connection.
            next(iter(idle if idle and len(owing) == 1 else owing))._cut()

    def data_received(self, data: bytes) -> None:
        """Read bytes; close the connection if its head has become too large."""
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._owe()
        super().data_received(data)
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._cut()

    def on_response_complete(self) -> None:
        """Mark the connection as idle."""
        super().on_response_complete()
        if self.timeout_keep_alive_task is not None:
            self._waiting("idle")[self] = None

    def on_headers_complete(self) -> None:
        """Stop the timer: the head is complete."""
        self._paid()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._paid()
        super().connection_lost(exc)

    def _waiting(self, what: str) -> OrderedDict[GuardedProtocol, None]:
        """Return the connections that owe a head, or those that are idle, the longest first."""
        found: OrderedDict[GuardedProtocol, None] = self.server_state.__dict__.setdefault(
            what, OrderedDict()
        )
        return found

    def _owe(self) -> None:
        self._head_bytes = 0
        self._timer = self.loop.call_later(self.head_seconds, self._cut)
        self._waiting("idle").pop(self, None)
        self._waiting("owing")[self] = None

    def _paid(self) -> None:
        self._waiting("idle").pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._waiting("owing").pop(self, None)

    def _cut(self) -> None:
        self._paid()
        self.transport.abort()
