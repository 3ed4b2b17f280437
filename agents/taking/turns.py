"""Give turns to the partitions of a worker, which has one thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

LATE: Final = 0.1
"""Seconds of waiting after which feedback of one partition has every second turn: elsewhere
requests would be decided, and bring further feedback, as fast as this waits."""
IN_A_ROW: Final = 4
"""Urgent ones that go first before one that waits longer has its turn."""
TOGETHER: Final = 0.002
"""Seconds of a turn in which further partitions join: their record batches, and then their answers,
leave in one produce request. A group of a backlog takes as long by itself."""
LOOKS_FIRST: Final = 2
LOOKS: Final = 8
"""Looks at the network before a group with requests, and before one without, while a request is
under way. What it waits for comes in as many steps (`benchmarks.stream`, at half of the largest
rate and with a backlog of bills)."""


class Turns:
    """Let one turn at a time pass between two looks at the network, groups with requests first: a
    request never waits for more than the turn that passes, and those of its kind. While one is
    under way to its answer, those that wait for a turn wait for some looks.

    A turn is a group of one partition, and what others have that came with it, while all together
    take less than `TOGETHER`.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken = self._open = False
        self._began = 0.0
        self._waiting: list[tuple[asyncio.Future[None], Callable[[], bool], float]] = []
        self._in_a_row = self._under_way = self._looks = 0
        self._late = False

    def watch(self, answer: asyncio.Task[None]) -> None:
        """Note that a group with requests is under way until its task is done."""
        self._under_way += 1
        answer.add_done_callback(self._arrived)

    def _arrived(self, answer: asyncio.Task[None]) -> None:
        self._under_way -= 1

    async def take(self, urgent: Callable[[], bool], *, since: float = math.inf) -> None:
        """Return when it is the caller's turn, which lasts until it awaits something.

        Args:
            urgent: tells whether there are requests; they may come while the turn is waited for.
            since: monotonic time since which feedback waits.
        """
        if self._may_join():
            return
        loop = asyncio.get_running_loop()
        if self._taken:
            turn = loop.create_future()
            self._waiting.append((turn, urgent, since))
            await turn
        self._taken = self._open = True
        self._began = self._clock()
        loop.call_soon(self._pass_on)

    def _may_join(self) -> bool:
        """Tell whether the turn that passes has time left: it has no look at the network yet, and
        nobody waits."""
        return self._open and not self._waiting and 0 <= self._clock() - self._began < TOGETHER

    def _pass_on(self) -> None:
        self._open = False
        # not those whose tasks were cancelled
        self._waiting = [waiting for waiting in self._waiting if not waiting[0].done()]
        if not self._waiting:
            self._taken, self._looks = False, 0
            return
        first = next((i for i, (_, urgent, _) in enumerate(self._waiting) if urgent()), None)
        if self._under_way and self._looks < (LOOKS if first is None else LOOKS_FIRST):
            self._looks += 1
            asyncio.get_running_loop().call_soon(self._pass_on)
            return
        self._looks = 0
        self._waiting.pop(self._next(first))[0].set_result(None)

    def _next(self, first: int | None) -> int:
        """Return whose turn is next; `first` is the first that has requests."""
        oldest = min(range(len(self._waiting)), key=lambda i: self._waiting[i][2])
        late = self._waiting[oldest][2] < self._clock() - LATE
        self._late = late and not self._late
        if self._late:
            return oldest
        if first is None or self._in_a_row == IN_A_ROW:
            self._in_a_row = 0
            return 0
        self._in_a_row += 1
        return first
