"""Stand between agents and the outside: no exception escapes a group, nothing is skipped, nothing
is sent without an answer."""

import logging
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NoReturn, Protocol, Self, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
Headers = Sequence[tuple[str, bytes]]


class BoundaryError(Exception):
    """Base of this module's errors; no client can cause one, so each ends the process."""

    reason = "boundary"
    retriable = False


class GaveUp(BoundaryError):
    """A transient failure lasted longer than its deadline."""

    reason = "gave_up"


def exit_at_once(status: int = 1) -> NoReturn:
    """End the process at once: an orderly stop would commit offsets of events that nobody has
    finished."""
    logging.shutdown()
    os._exit(status)


def now() -> float:
    """Return seconds since the epoch in whole microseconds, as times are on the wire: a replay gets
    the very same number."""
    return time.time_ns() // 1000 / 1e6


def leave(error: BaseException) -> NoReturn:
    """End the process for an error after which nothing may go on."""
    log.critical("leaving, as nothing may go on after this error", exc_info=error)
    exit_at_once()


@contextmanager
def fatal() -> Iterator[None]:
    """Surround the whole body of a loop: any exception ends the process, cancellation passes."""
    try:
        yield
    except Exception as error:
        leave(error)


class Attempt:
    """Catch any exception of the block, keep it in `error` and go on after the block. Cancellation
    passes.

    Attributes:
        error: the exception; None if there was none.
    """

    error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


@contextmanager
def undoing(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if the block raises anything, cancellation included."""
    with ExitStack() as failed:
        failed.callback(undo)
        yield
        failed.pop_all()


async def pause(seconds: float) -> None:
    """Sleep for this number of seconds."""
    import asyncio  # here: it is a quarter of the time in which `pbstream --help` starts

    await asyncio.sleep(seconds)


async def retrying(
    call: Callable[[], Awaitable[T]],
    *,
    transient: tuple[type[BaseException], ...],
    deadline: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]] = pause,
    jitter: Callable[[], float] = random.random,
    on_retry: Callable[[BaseException], None] = lambda error: None,
) -> T:
    """Repeat a call until it succeeds. Later events wait meanwhile, so that their order is kept.

    Args:
        transient: the errors worth another try; any other is raised at once.
        deadline: seconds from the first try to the last one.
        clock: monotonic seconds.

    Raises:
        GaveUp: the call still failed at the deadline; the cause is its last error.
    """
    # From 50 ms doubled up to 2 s, each shortened by up to a half, so that workers which lost the
    # same broker do not return in step ("equal jitter", AWS Architecture Blog, 2015).
    started, delay = clock(), 0.05
    while True:
        try:
            return await call()
        except transient as error:
            if clock() - started + delay > deadline:
                raise GaveUp(
                    f"still failing after {clock() - started:.0f} s: {type(error).__name__}"
                ) from error
            on_retry(error)
            await sleep(delay * (0.5 + jitter() / 2))
            delay = min(delay * 2, 2.0)


class Produce(Protocol):
    """Hand one record over to be sent, and return its delivery."""

    def __call__(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = None,
        headers: Headers | None = None,
    ) -> Awaitable[Awaitable[object]]: ...
