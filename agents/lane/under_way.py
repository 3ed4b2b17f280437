"""The groups of one partition that are applied, and not finished yet."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Final

from agents.group import Group
from agents.ports import Table
from ground.boundary import BoundaryError

UNDER_WAY: Final = 2
"""Most groups of a partition that are applied and not durable yet: one's record batch travels, the
next one's is packed. More would only make them smaller (`benchmarks.stream`)."""
UNANSWERED: Final = 8
"""Groups of a partition that are not finished, those whose answers are on their way included."""


class Voided(BoundaryError):
    """A group can't become durable, because an earlier one did not."""

    reason = "voided"


class Gone(Exception):
    """The partition is not this worker's any more; its next owner goes on."""

    reason = "partition_gone"
    retriable = False


class UnderWay:
    """The groups under way, in their order; their number is bounded."""

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
        """Wait until another group may be applied. Groups grow meanwhile.

        Args:
            whole: as much is there as a group takes. What is less waits until the batch that
                travels has landed: each group costs as much as the decisions of several requests.

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
        """Return when everything that has been applied by now is durable. Raises Voided, Gone."""
        if self._groups and not self._groups[-1].durable.done():
            await asyncio.wait([self._groups[-1].durable])
        self.require_sound()

    def look_again(self) -> None:
        """Let those who wait for room look again: the table has been opened."""
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
        """Let no group follow: it is not known what the state is, or what is on the log."""
        self._broken = error
        self._room.set()

    def stop(self) -> None:
        """Let no group follow: the partition is lost."""
        self._gone = True
        self._room.set()

    def require_sound(self) -> None:
        """Raise Gone where the partition was lost, and Voided where no group may follow."""
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
