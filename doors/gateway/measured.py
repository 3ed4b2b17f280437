"""Count and time responses, and close connections of clients that do not read them."""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doors.gateway.metrics import GatewayMetrics

WRITE_SECONDS = 30.0
"""Seconds within which a client must read its response."""


class Measured:
    """An ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, metrics: GatewayMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; the last fixed word of its path names it in the metrics."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # A request without a response, such as of a client that hung up, counts as a failure.
        started, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            async with asyncio.timeout(WRITE_SECONDS):
                await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            what = _name(scope)
            self._metrics.requests.labels(what=what, status=status).inc()
            self._metrics.seconds.labels(what=what).observe(time.perf_counter() - started)


def _name(scope: Scope) -> str:
    route = scope.get("route")
    name = getattr(route, "name", "other")
    return str(name)
