"""Check that no record on the log was skipped between two delivered records, and that the log was
not cut off before a record that was read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise

from faust.types import TP

from ground.messages import Placed


class OffsetGap(Exception):
    """Records that exist on the log were never delivered."""

    reason = "offset_gap"
    retriable = False


class LogCutOff(Exception):
    """A partition ends before records that were read from it."""

    reason = "log_cut_off"
    retriable = False


class GapGuard:
    """A check that every record of a partition follows the record before it, from the committed
    offset on.

    Args:
        generation: function that returns the current assignment's number.
        start_at: function that returns the offset from which the current assignment reads a
            partition, None if unknown.
        holds_records: function that tells whether the log still has a record of a partition in
            [start, end); holes of compaction, retention or transaction markers are not gaps.
        end_of: function that returns the offset behind the last record of a partition on the log.

    Attributes:
        contained: function that returns the last offset of a partition that the state contains; −1
            before the first.
    """

    def __init__(
        self,
        *,
        generation: Callable[[], int],
        start_at: Callable[[TP], int | None],
        holds_records: Callable[[TP, int, int], Awaitable[bool]],
        end_of: Callable[[TP], Awaitable[int]],
    ) -> None:
        self._generation = generation
        self._start_at = start_at
        self._holds_records = holds_records
        self._end_of = end_of
        self.contained: Callable[[TP], int] = lambda tp: -1
        self._expected: dict[TP, tuple[int, int]] = {}

    async def check(self, tp: TP, records: Sequence[Placed]) -> None:
        """Check records of one partition, in order.

        Raises:
            OffsetGap: a record before or among them is missing.
            LogCutOff: the log ends before a
            record that was read.
        """
        now = self._generation()
        generation, following = self._expected.get(tp, (None, None))
        # A new assignment begins at the committed offset, wherever this process had been reading.
        if generation != now:
            following = self._start_at(tp)
        first, last = records[0].offset, records[-1].offset
        if following is not None and first > following:
            await self._must_be_empty(tp, following, first)
        # A group that was away while its topic was deleted has no committed offset, but a state.
        read = max(following or 0, self.contained(tp) + 1) if generation != now else following
        if read is not None and first < read:
            await self._must_go_on_to(tp, read)
        # Offsets are dense on most fetches: pairs are looked at only where a hole must be among
        # them.
        if last - first >= len(records):
            for before, after in pairwise(records):
                if after.offset > before.offset + 1:
                    await self._must_be_empty(tp, before.offset + 1, after.offset)
        self._expected[tp] = (now, last + 1)

    async def _must_be_empty(self, tp: TP, start: int, end: int) -> None:
        if await self._holds_records(tp, start, end):
            raise OffsetGap(f"{tp}: offset {start} was to come, {end} came")

    async def _must_go_on_to(self, tp: TP, following: int) -> None:
        end = await self._end_of(tp)
        if end < following:
            raise LogCutOff(
                f"{tp.topic}, partition {tp.partition}, ends at offset {end}, but was read up to "
                f"{following}: the topic was deleted and made again, or its end was lost. The "
                "state takes its events for those that it contains. See docs/how-to/backup.md, "
                '"If a topic was deleted and made again"'
            )
