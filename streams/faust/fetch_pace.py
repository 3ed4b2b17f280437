"""Let fetches leave together: a tick apart while the event loop is busy, and those of feedback
further apart. Each fetch then brings the records of all partitions that came meanwhile, for one
turn of their lanes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Final

from streams.faust.busy_share import BusyShare

if TYPE_CHECKING:
    from aiokafka.consumer.fetcher import Fetcher
    from aiokafka.consumer.subscription_state import Assignment, TopicPartitionState
    from aiokafka.structs import TopicPartition

CALM: Final = 1 / 3
"""Share of the time in which the event loop may be busy before fetches wait: below, a request is
fetched at once."""
FULL: Final = 2 / 3
"""Share from which on the tick is the longest."""
LONGEST: Final = 0.003
"""Seconds of the longest tick: a request waits for about half of it, and a shorter tick costs more
CPU (`benchmarks.stream`, its rows of ordinary traffic)."""
SOON: Final = 0.15
"""Seconds from a fetch with feedback until one that leaves anyhow asks for feedback again. Each
event that is fetched alone wakes the worker for a fetch, a group and a record batch of its own
(`benchmarks.stream`, its rows of ordinary traffic)."""
LATEST: Final = 0.2
"""Seconds until feedback is fetched although no other event has come."""


class UrgentPart:
    """The partitions of an assignment without feedback's, as aiokafka's fetcher looks at an
    assignment.
    """

    def __init__(self, assignment: Assignment, feedback: Container[str]) -> None:
        self.whole = assignment
        self.tps = [tp for tp in assignment.tps if tp.topic not in feedback]

    def state_value(self, tp: TopicPartition) -> TopicPartitionState:
        """Return aiokafka's state of a partition."""
        return self.whole.state_value(tp)


class FetchPace:
    """The time at which the next fetch may leave, and the partitions that the fetch asks for.

    Fetches are a tick apart. The tick grows with the share of the time in which the event loop is
    busy. A fetch, a produce request and a turn of the lanes cost as much as several events, so a
    longer tick leaves the loop less busy. The two settle where the tick is as short as the load
    allows.

    Args:
        feedback: topics that are fetched `SOON` to `LATEST` after their last events. All others are
            fetched at the next tick.
        busy: returns the share of the time in which the event loop is busy.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        feedback: Container[str],
        busy: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._feedback = feedback
        self._busy = BusyShare() if busy is None else busy
        self._clock = clock
        self._from = self._feedback_from = clock()
        self._part: UrgentPart | None = None

    def rest(self, fetched: Iterable[TopicPartition]) -> None:
        """Note that all present events of these partitions were fetched. The next fetch leaves a
        tick later.
        """
        now = self._clock()
        part = (self._busy() - CALM) / (FULL - CALM)
        self._from = now + LONGEST * min(max(part, 0.0), 1.0)
        if any(tp.topic in self._feedback for tp in fetched):
            self._feedback_from = now + SOON

    @property
    def left(self) -> float:
        """Return the seconds until a fetch may leave, 0 for now."""
        return self._until(self._from, most=2 * LONGEST)

    def _until(self, then: float, *, most: float) -> float:
        left = then - self._clock()
        # Where the clock has jumped back, no rest is that long.
        return left if 0.0 < left < most else 0.0

    def of(self, fetcher: Fetcher) -> None:
        """Let a fetcher keep to this pace."""
        actions = fetcher._get_actions_per_node

        def paced(assignment: Assignment) -> object:
            if left := self.left:
                # No fetches, no resets; look again then; no metadata, no resumed partitions.
                return [], {}, left, False, []
            if not (left := self._until(self._feedback_from, most=2 * SOON)):
                return actions(assignment)
            left += LATEST - SOON
            if self._part is None or self._part.whole is not assignment:
                self._part = UrgentPart(assignment, self._feedback)
            held = fetcher._fetch_max_wait_ms
            # The broker answers when the other partitions are to be fetched again.
            fetcher._fetch_max_wait_ms = min(held, math.ceil(1000 * left))
            fetches, resets, wait, invalid, resumed = actions(self._part)
            fetcher._fetch_max_wait_ms = held
            return fetches, resets, min(wait, left), invalid, resumed

        fetcher._get_actions_per_node = paced
