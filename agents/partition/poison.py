"""Isolate what the worker fails on, and let all else go on: an event is refused after three tries;
a router or a pool on which timed work fails is set aside until its next change.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from agents.partition.news import News
from agents.ports import Count
from agents.refusal_kinds import InternalError
from agents.table import Table, keys
from ground.boundary import Attempt, BoundaryError
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

    Raises:
        InternalError: the block failed; the text quotes nothing of the event.
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


class Aside:
    """Routers and pools of one partition that are set aside.

    Attributes:
        failed: by work and kind, the records of routers and pools at the time when the work failed
            on them. Every change of a router or a pool changes its record.
    """

    def __init__(self, table: Table, news: News, count: Count) -> None:
        self._table, self._news, self._count = table, news, count
        self.failed: dict[tuple[str, bytes], dict[str, bytes | None]] = {}

    def skips(self, work: str, kind: bytes, name: str) -> bool:
        """Tell whether this work has failed on a router or a pool that has not changed since."""
        failed = self.failed.get((work, kind))
        return (
            failed is not None
            and name in failed
            and failed[name] == self._table.get(keys.key(kind, name))
        )

    @contextmanager
    def trying(self, work: str, kind: bytes, name: str) -> Iterator[None]:
        """Do some work for one router or pool, and set it aside if the work fails. Errors that end
        the process pass.

        Args:
            kind: `keys.HEAD` for a router, `keys.POOL` for a pool, `keys.FAMILY` for a family.
        """
        with Attempt() as attempt:
            yield
        if (error := attempt.error) is None:
            self.done(work, kind, name)
        elif blamed(error, f"{work} of {keys.OF[kind]} {name}") is None:
            raise error
        else:
            self.note(work, kind, name, why=type(error).__name__)

    def note(self, work: str, kind: bytes, name: str, *, why: str) -> None:
        """Set a router or a pool aside, with one alert until the work succeeds again."""
        known = self.failed.setdefault((work, kind), {})
        if name not in known:
            of = keys.OF[kind]
            evidence = {"work": work, "of": of, "why": why, "partition": self._table.number}
            self._news.alert(name, "set_aside", evidence)
            self._count("set_aside")
        known[name] = self._table.get(keys.key(kind, name))

    def done(self, work: str, kind: bytes, name: str) -> None:
        """Note that the work has succeeded."""
        if (known := self.failed.get((work, kind))) is not None:
            known.pop(name, None)
