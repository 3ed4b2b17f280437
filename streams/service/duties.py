"""Run a worker's timed duties, from the first recovery until a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ground.boundary import fatal
from streams.faust.faust_app import FaustApp


class Duties:
    """The timers of a worker: each writes and sends, so a stop waits for those that are at work."""

    def __init__(self, app: FaustApp) -> None:
        self._app = app
        # Duties at work are counted, as there may be several.
        self._at_work = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def every(self, seconds: float, duty: Callable[[], Awaitable[None]]) -> None:
        """Do a duty at this interval; an exception in it ends the process."""

        async def bounded() -> None:
            # No new group begins while partitions are handed over.
            if not self._app.should_stop:
                with fatal():
                    await self._do(duty)

        self._app.timer(seconds)(bounded)

    async def _do(self, duty: Callable[[], Awaitable[None]]) -> None:
        self._at_work += 1
        self._idle.clear()
        try:
            await duty()
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._idle.set()

    async def done(self) -> None:
        """Wait until no duty is at work."""
        await self._idle.wait()
