"""Track events that are being delivered, each in a task; a request goes before its bill and
rewards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar

from paretobandit_client.client_errors import RouterError, Undelivered
from paretobandit_client.sent_events import Ask, Event
from paretobandit_client.waiting import Ref

log = logging.getLogger(__name__)
T = TypeVar("T")
Before = asyncio.Task[object] | None
"""Delivery of the request that an event is about, while it is under way."""
MOST = 50_000
"""Most events being delivered at a time; each is a task of some kB while Kafka is away."""


class Deliveries:
    """The events that were handed over and are not delivered yet.

    Args:
        most: the largest number of them; a further one raises Undelivered.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._tasks: set[asyncio.Task[object]] = set()
        self._requests: dict[Ref, asyncio.Task[object]] = {}

    def begin(
        self, event: Event, deliver: Callable[[Before], Coroutine[object, None, T]]
    ) -> asyncio.Task[T]:
        """Deliver an event in a task of its own; await it through a shield. Raises Undelivered."""
        if len(self._tasks) >= self._most:
            raise Undelivered(f"{len(self._tasks)} events are on their way already")
        ref = (event.router_id, event.request_id)
        task = spawn(deliver(None if isinstance(event, Ask) else self._requests.get(ref)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if isinstance(event, Ask):
            self._requests[ref] = task
            task.add_done_callback(lambda done: self._forget(ref, done))
        return task

    def under_way(self, ref: Ref) -> bool:
        """Tell whether a request is still to be delivered."""
        return ref in self._requests

    async def finish(self, seconds: float) -> int:
        """Wait for all deliveries, for `seconds` at most; return how many were given up."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        left = [task for task in self._tasks if not task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return len(left)

    def _forget(self, ref: Ref, task: asyncio.Task[object]) -> None:
        if self._requests.get(ref) is task:
            del self._requests[ref]


def spawn(work: Coroutine[object, None, T]) -> asyncio.Task[T]:
    """Start a task whose failure is logged even if nobody awaits it."""
    task = asyncio.create_task(work)
    task.add_done_callback(_seen)
    return task


def _seen(task: asyncio.Task[object]) -> None:
    if task.cancelled() or (error := task.exception()) is None:
        return
    if not isinstance(error, RouterError | TimeoutError):
        log.error("a task of the client failed", exc_info=error)
