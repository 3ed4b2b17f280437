"""Isolate an event on which the worker fails: after three tries it is refused, and all others go
on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from agents.refusals import InternalError
from ground.boundary import BoundaryError
from ground.messages import Message

log = logging.getLogger(__name__)

T = TypeVar("T")

LIVES = 3
"""Number of tries of an event alone, so that a defect that depends on other things may pass.
"""


@contextmanager
def on_behalf_of(source: Message | str) -> Iterator[None]:
    """Attribute errors of the block to an event, or to work named in words. Errors that end the
    process pass.

    Raises:
        InternalError: quotes nothing of an event.
    """
    try:
        yield
    except Exception as error:
        failed = blamed(error, source)
        if failed is None or failed is error:
            raise
        raise failed from error


def blamed(error: BaseException, source: Message | str | None) -> InternalError | None:
    """Return an error as one that concerns this source alone; None for what ends the process, and
    for what no source is to blame for."""
    if isinstance(error, InternalError):
        return error
    if source is None or not isinstance(error, Exception) or isinstance(error, BoundaryError):
        return None
    where = (
        source if isinstance(source, str) else f"{source.topic}-{source.partition}@{source.offset}"
    )
    log.error("failed on %s", where, exc_info=error)
    return InternalError(f"{type(error).__name__} in the worker; its log has the trace")


async def try_alone(
    items: Sequence[T],
    step: Callable[[list[T]], Awaitable[None]],
    give_up: Callable[[T, InternalError], Awaitable[None]],
) -> None:
    """Do a step for all items together; where that fails for one of them, for each alone, and give
    those up that fail again.

    Args:
        step: raises InternalError when it has failed; then it has changed nothing.
        give_up: called with an item that has failed as often as it has lives.
    """
    try:
        await step(list(items))
    except InternalError as error:
        for item in items:
            await _alone(item, step, give_up, error)


async def _alone(
    item: T,
    step: Callable[[list[T]], Awaitable[None]],
    give_up: Callable[[T, InternalError], Awaitable[None]],
    error: InternalError,
) -> None:
    for _ in range(LIVES):
        try:
            await step([item])
            return
        except InternalError as again:
            error = again
    await give_up(item, error)
