"""Have a verifier look at an answer. A verifier that fails or takes too long counts as not run."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from paretobandit_client import bounds, checks

log = logging.getLogger(__name__)
Verify: TypeAlias = Callable[[Any], Any]
"""Takes an answer, and returns or awaits True, False or a number from 0 to 1; None: no verdict."""
SECONDS = 10.0
"""Seconds that a verdict is waited for, unless its verifier says otherwise."""
MOST_THREADS = 256
"""Most threads of one verifier. Threads can't be stopped: one that hangs keeps its own."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """A callable that rates answers, and the seconds for which a caller waits for its verdict.

    A callable that is not asynchronous runs in a thread, so that the application goes on meanwhile.
    """

    look: Verify
    seconds: float = SECONDS
    _threads: set[threading.Thread] = field(default_factory=set, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.look):
            raise ValueError(f"a verifier is a callable that takes an answer, not {self.look!r}")
        checks.seconds(self.seconds)

    async def verdict(self, answer: object) -> object:
        """Return the callable's verdict on an answer. Raises what the callable raises."""
        if _is_asynchronous(self.look):
            return await self.look(answer)
        if len(self._threads) >= MOST_THREADS:
            raise TooManyThreads
        found = await self._in_thread(answer)
        return await found if inspect.isawaitable(found) else found

    async def _in_thread(self, answer: object) -> object:
        # The threads of asyncio's executor are few, and a process waits for them at its end.
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        ended: asyncio.Future[tuple[object, Exception | None]] = loop.create_future()

        def end(found: object, error: Exception | None) -> None:
            if not ended.done():
                ended.set_result((found, error))

        def work() -> None:
            found: object = None
            error: Exception | None = None
            try:
                found = context.run(self.look, answer)
            except Exception as raised:  # it is raised where it is waited for
                error = raised
            except BaseException as raised:  # in a thread, SystemExit ends nothing else
                error = RuntimeError(type(raised).__name__)
            self._threads.discard(threading.current_thread())
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, found, error)

        thread = threading.Thread(target=work, name="verifier", daemon=True)
        self._threads.add(thread)
        thread.start()
        found, error = await ended
        if error is not None:
            raise error
        return found


class TooManyThreads(Exception):
    """Too many calls of a verifier run at the same time."""


def verifiers_of(given: Mapping[str, Verify | Verifier]) -> dict[str, Verifier]:
    """Return verifiers by their names. Raises ValueError for an object that is no verifier."""
    return {
        bounds.name("verifier", name): one if isinstance(one, Verifier) else Verifier(one)
        for name, one in given.items()
    }


async def verdict_of(name: str, verifier: Verifier, answer: object) -> float | None:
    """Return a verdict in [0, 1]. None: no verdict came in time, and the log says why."""
    looking = asyncio.create_task(verifier.verdict(answer))
    try:
        # Unlike asyncio.wait_for, this does not wait for one that takes no notice of its end.
        done, _ = await asyncio.wait({looking}, timeout=verifier.seconds)
    finally:
        looking.cancel()
    if not done:
        log.warning("verifier %s took more than %g s: no verdict", name, verifier.seconds)
        return None
    error = looking.exception() if not looking.cancelled() else asyncio.CancelledError()
    if error is not None:
        # Only its kind: its text may quote the answer.
        log.warning("verifier %s failed, %s: no verdict", name, type(error).__name__)
        return None
    return _number(name, looking.result())


def _is_asynchronous(look: Verify) -> bool:
    call = getattr(look, "__call__", None)  # noqa: B004  # of an object that can be called
    return inspect.iscoroutinefunction(look) or inspect.iscoroutinefunction(call)


def _number(name: str, verdict: object) -> float | None:
    if verdict is None:
        return None
    try:
        return bounds.verdict(verdict)
    except ValueError:
        log.warning(
            "verifier %s said no verdict but %s: True, False or a number from 0 to 1",
            name,
            type(verdict).__name__,
        )
        return None
