"""The groups of one partition that are applied and not finished yet."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from agents.group import Group
from agents.table import Table
from ground.boundary import BoundaryError

UNDER_WAY: Final = 2
"""Most groups of a partition that are applied and not durable: while one record batch travels, the
next is packed. A higher number would only make groups smaller (`benchmarks.stream`).
"""
UNANSWERED: Final = 8
"""Most groups of a partition that are not finished, including those whose answers are being
sent.
"""


class Voided(BoundaryError):
    """A group can't become durable, because an earlier one did not."""

    reason = "voided"


class Gone(Exception):
    """The partition no longer belongs to this worker; its next owner goes on."""

    reason = "partition_gone"
    retriable = False


class UnderWay:
    """The unfinished groups, in order; their number is bounded."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._groups: deque[Group] = deque()
        self._undurable = 0
        self._room = asyncio.Event()
        self._broken: BaseException | None = None
        self._gone = False

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups)

    async def room(self, *, whole: bool = True) -> None:
        """Wait until another group may be applied. More events may come meanwhile.

        Args:
            whole: whether as many events wait as a group takes. A smaller group waits until the
                travelling record batch has landed: each group costs as much time as the decisions
                of several requests.

        Raises:
            Voided: no group may follow.
            Gone: the partition was lost.
        """
        while (
            (
                self._undurable >= (UNDER_WAY if whole else 1)
                or len(self._groups) >= UNANSWERED
                or not self._table.open
            )
            and self._broken is None
            and not self._gone
        ):
            self._room.clear()
            await self._room.wait()
        self.require_sound()

    async def settled(self) -> None:
        """Return when all groups that have been applied by now are durable. Raises Voided,
        Gone.
        """
        if self._groups and not self._groups[-1].durable.done():
            await asyncio.wait([self._groups[-1].durable])
        self.require_sound()

    def look_again(self) -> None:
        """Wake the tasks that wait for room, as the table has been opened."""
        self._room.set()

    def add(self, group: Group) -> Group | None:
        """Add a group; return the one before it."""
        before = self._groups[-1] if self._groups else None
        self._groups.append(group)
        self._undurable += 1
        return before

    def landed(self, group: Group) -> None:
        """Note that a group is durable."""
        group.durable.set_result(True)
        self._undurable -= 1
        self._room.set()

    def failed(self, group: Group, error: BaseException) -> None:
        """Note that a group is not durable, or not answered."""
        self.break_off(error)
        if not group.durable.done():
            group.durable.set_result(False)

    def break_off(self, error: BaseException) -> None:
        """Let no group follow, as the state or the log is not known any more."""
        self._broken = error
        self._room.set()

    def stop(self) -> None:
        """Let no group follow: the partition is lost."""
        self._gone = True
        self._room.set()

    def require_sound(self) -> None:
        """Raise Gone if the partition was lost, and Voided if no group may follow."""
        if self._gone:
            raise Gone("this partition was lost meanwhile")
        if self._broken is not None:
            raise Voided("a group before this one is not on the log") from self._broken

    def take_finished(self) -> list[Group]:
        """Remove and return the finished groups that stand before all others."""
        found = []
        while self._groups and self._groups[0].finished:
            found.append(self._groups.popleft())
        self._room.set()
        return found
