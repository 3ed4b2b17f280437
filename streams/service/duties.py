"""Run a worker's timed duties, from the first recovery until a stop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ground.boundary import fatal
from streams.faust.faust_app import FaustApp

SAME = 0.002
"""Seconds within which duties are due at the same time: libuv's clock counts milliseconds."""


@dataclass(slots=True)
class Duty:
    """Work that is due at each multiple of an interval; a run that lasts longer than the interval
    skips the multiples that pass meanwhile."""

    seconds: float
    do: Callable[[], Awaitable[None]]
    due: float = 0.0
    task: asyncio.Task[None] | None = None


class Duties:
    """The timers of a worker: each writes and sends, so a stop waits for those that are at work.

    Duties are due at multiples of their intervals on the loop's clock, so most of them share a
    wakeup of the loop: a wakeup of an idle worker costs more than most duties.
    """

    def __init__(self, app: FaustApp) -> None:
        self._app = app
        self._duties: list[Duty] = []
        app.task(self._keep_time)

    def every(self, seconds: float, duty: Callable[[], Awaitable[None]]) -> None:
        """Do a duty at this interval; an exception in it ends the process."""
        self._duties.append(Duty(seconds, duty))

    async def _keep_time(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._duties and not self._app.should_stop:
            now = clock()
            for duty in self._duties:
                if duty.due <= now + SAME:
                    self._start(duty)
                    duty.due = after(now, duty.seconds)
            await asyncio.sleep(max(min(duty.due for duty in self._duties) - clock(), 0.0))

    def _start(self, duty: Duty) -> None:
        # Not at the first look, at which nothing is due yet.
        if duty.due and (duty.task is None or duty.task.done()):
            duty.task = asyncio.create_task(_bounded(duty.do))

    async def done(self) -> None:
        """Wait until no duty is at work."""
        if at_work := [duty.task for duty in self._duties if duty.task is not None]:
            await asyncio.wait(at_work)


def after(now: float, seconds: float) -> float:
    """Return the next multiple of an interval that is later than `now`, not the one that is now."""
    return (math.floor((now + SAME) / seconds) + 1) * seconds


async def _bounded(do: Callable[[], Awaitable[None]]) -> None:
    with fatal():
        await do()
