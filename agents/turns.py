"""Decide which of many lanes takes the event loop's thread next."""

from __future__ import annotations

import asyncio
from collections import deque

IN_A_ROW = 4
"""Urgent ones that go first before one that waits longer has its turn."""


class Turns:
    """Let one group at a time be applied between two looks at the network, groups with requests
    first: a request never waits for more than the group that is being applied, and those of its
    kind.
    """

    def __init__(self) -> None:
        self._taken = False
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()
        self._in_a_row = 0

    async def take(self, *, urgent: bool) -> None:
        """Return when it is the caller's turn, which lasts until it awaits something."""
        loop = asyncio.get_running_loop()
        if self._taken:
            waiting = loop.create_future()
            (self._urgent if urgent else self._others).append(waiting)
            await waiting
        self._taken = True
        loop.call_soon(self._pass_on)

    def _pass_on(self) -> None:
        while self._urgent or self._others:
            first = self._urgent and (self._in_a_row < IN_A_ROW or not self._others)
            self._in_a_row = self._in_a_row + 1 if first else 0
            waiting = (self._urgent if first else self._others).popleft()
            if not waiting.done():  # else its task was cancelled
                waiting.set_result(None)
                return
        self._taken = False
