"""Isolate an event on which the worker fails: after three tries it is refused, and all other
events go on.
"""

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
"""Number of tries of an event by itself, as a defect that depends on other things may pass.
"""


class on_behalf_of:  # noqa: N801  # it reads as what it does
    """A context manager that attributes errors of its block to one event. Errors that end the
    process pass unchanged.

    It is a class, since a generator would take longer than many of the blocks.

    Args:
        source: a message or a parked event, with topic, partition and offset; or a description in
            words.
        Raises: InternalError: the block failed; the text quotes nothing of the event.
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
    """Return an error as an InternalError of this source; None for an error that ends the process
    or that no source is to blame for.
    """
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
    """Do a step for all items together. If that fails for one of them, do it for each item alone,
    and refuse those that fail again.

    Args:
        step: function that raises InternalError if it fails, and has then changed nothing.
        refuse: function called with an item that has failed `LIVES` times.
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
    """Do a step again for an item that has failed, up to `LIVES` times; refuse the item if the
    step still fails.
    """
    for _ in range(LIVES):
        try:
            await step([item])
            return
        except InternalError as again:
            error = again
    await refuse(item, error)
