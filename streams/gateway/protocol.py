"""HTTP connections that cost an attacker more than the gateway: heads are bounded in time and size,
half-sent ones give way.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
HEAD_BYTES = 65_536
MAX_CONNECTIONS = 10_000
"""Beyond this many, the connection that owes its request's head for longest is closed, whoever
opens the next one.
"""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which by itself waits for ever for a head that comes byte by byte, and
    keeps one of any size.
    """

    head_seconds = HEAD_SECONDS
    max_connections = MAX_CONNECTIONS
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Expect a head within its time."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._owe()
        if len(self.connections) > self.max_connections:
            next(iter(self._owing))._cut()

    def data_received(self, data: bytes) -> None:
        """Read on; a connection whose head is too large by now is closed."""
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._owe()
        super().data_received(data)
        if self._timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._cut()

    def on_headers_complete(self) -> None:
        """Note that a head is there."""
        self._paid()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._paid()
        super().connection_lost(exc)

    @property
    def _owing(self) -> OrderedDict[GuardedProtocol, None]:
        """The server's connections that owe a head, the longest one first."""
        found: OrderedDict[GuardedProtocol, None] = self.server_state.__dict__.setdefault(
            "owing", OrderedDict()
        )
        return found

    def _owe(self) -> None:
        self._head_bytes = 0
        self._timer = self.loop.call_later(self.head_seconds, self._cut)
        self._owing[self] = None

    def _paid(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._owing.pop(self, None)

    def _cut(self) -> None:
        self._paid()
        self.transport.abort()
