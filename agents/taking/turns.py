"""Give turns to the partitions of a worker, which has one thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

LATE: Final = 0.1
"""Seconds of waiting after which feedback of one partition gets every second turn. Otherwise
requests elsewhere could go first for ever, and bring ever more feedback.
"""
IN_A_ROW: Final = 4
"""Number of urgent groups that go first before a group that has waited longer gets its turn."""
TOGETHER: Final = 0.002
"""Seconds after the start of a turn in which groups of other partitions may join it. Their record
batches, and then their answers, leave in one produce request. A group of a backlog takes as long by
itself.
"""
LOOKS_FIRST: Final = 2
LOOKS: Final = 8
"""Turns of the event loop before each group while a request is under way. The answer that it waits
for takes as many turns (`benchmarks.stream`, at half of the largest rate and with a backlog of
bills).
"""


class Turns:
    """The turns of partitions. The event loop turns once between two turns of partitions, and
    groups with requests go first. So a request waits only for the turn that passes and for other
    groups with requests. While a request is under way to its answer, each group that waits lets
    some turns of the event loop pass first.

    A turn is a group of one partition, and the groups of other partitions that came with it, as far
    as they are applied within `TOGETHER`. Groups without requests join no turn that began while a
    request was under way.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken = self._open = self._calm = False
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
        """Wait for the caller's turn, which lasts until the caller awaits something.

        Args:
            urgent: function that tells whether requests wait, as they may come while the caller
                waits.
            since: monotonic time since which feedback waits.
        """
        if self._may_join() and (self._calm or urgent()):
            return
        loop = asyncio.get_running_loop()
        if self._taken:
            turn = loop.create_future()
            self._waiting.append((turn, urgent, since))
            await turn
        self._taken = self._open = True
        self._calm, self._began = not self._under_way, self._clock()
        loop.call_soon(self._pass_on)

    def _may_join(self) -> bool:
        """Return whether the caller may join the turn that passes: it has time left, the event loop
        has not turned since, and nobody waits.
        """
        return self._open and not self._waiting and 0 <= self._clock() - self._began < TOGETHER

    def _pass_on(self) -> None:
        self._open = False
        # tasks that were cancelled are left out
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
        """Return the position of the waiter whose turn is next; `first` is the first waiter with
        requests.
        """
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
