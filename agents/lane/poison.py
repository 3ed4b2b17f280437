"""Isolate an event on which the worker fails: after three tries it is refused, and all others go
on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from agents.refusal_kinds import InternalError
from ground.boundary import BoundaryError
from ground.messages import Message

log = logging.getLogger(__name__)

T = TypeVar("T")

LIVES = 3
"""Number of tries of an event alone, so that a defect that depends on other things may pass.
"""


class on_behalf_of:  # noqa: N801  # it reads as what it does
    """A context manager that attributes errors of the block to one event. Errors that end the
    process pass.

    A class, since a generator would take longer than much of what it surrounds.

    Args:
        source: a message or a parked event, with topic, partition and offset; or what is moved in
            words.

    Raises:
        InternalError: quotes nothing of the event.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Message | str) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        failed = blamed(error, self._source)
        if failed is not None and failed is not error:
            raise failed from error


def blamed(error: BaseException | None, source: Message | str | None) -> InternalError | None:
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
    refuse: Callable[[T, InternalError], Awaitable[None]],
) -> None:
    """Do a step for all items together; where that fails for one of them, for each alone, and
    refuse those that fail again.

    Args:
        step: raises InternalError when it has failed; then it has changed nothing.
        refuse: called with an item that has failed as often as it has lives.
    """
    try:
        await step(list(items))
    except InternalError as error:
        for item in items:
            await alone(item, step, refuse, error)


async def alone(
    item: T,
    step: Callable[[list[T]], Awaitable[None]],
    refuse: Callable[[T, InternalError], Awaitable[None]],
    error: InternalError,
) -> None:
    """Do a step for an item that has failed, as often as it has lives; refuse it where that fails,
    too."""
    for _ in range(LIVES):
        try:
            await step([item])
            return
        except InternalError as again:
            error = again
    await refuse(item, error)
