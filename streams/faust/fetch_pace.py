"""Let fetches leave a tick apart while the event loop is busy: each then brings what has come of
all partitions meanwhile, which is one turn of their lanes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streams.faust.busy_share import BusyShare

if TYPE_CHECKING:
    from aiokafka.consumer.fetcher import Fetcher
    from aiokafka.consumer.subscription_state import Assignment

CALM: Final = 1 / 3
"""Share of the time in which the event loop may be busy before fetches wait: below, an event is
fetched at once."""
FULL: Final = 2 / 3
"""Share from which on the tick is the longest."""
LONGEST: Final = 0.003
"""Seconds of the longest tick: a request waits for about half of it, and a shorter tick costs more
CPU (`benchmarks.stream`, its rows of ordinary traffic)."""


class FetchPace:
    """The time at which the next fetch may leave.

    The tick grows with the share of the time in which the loop is busy. A fetch, a produce request
    and a turn of the lanes cost as much as several events, so with a longer tick the loop is less
    busy: the two settle where the tick is as short as the load allows.

    Args:
        busy: that share.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        busy: Callable[[], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._busy = BusyShare() if busy is None else busy
        self._clock = clock
        self._from = clock()

    def rest(self) -> None:
        """Note that all events of the log were fetched; the next fetch leaves a tick later."""
        part = (self._busy() - CALM) / (FULL - CALM)
        self._from = self._clock() + LONGEST * min(max(part, 0.0), 1.0)

    @property
    def left(self) -> float:
        """Return the seconds until a fetch may leave, 0 for now."""
        left = self._from - self._clock()
        # Where the clock has jumped back, no rest is that long.
        return left if 0.0 < left < 2 * LONGEST else 0.0

    def of(self, fetcher: Fetcher) -> None:
        """Let a fetcher keep to this pace."""
        actions = fetcher._get_actions_per_node

        def after_the_rest(assignment: Assignment) -> object:
            if left := self.left:
                # No fetches, no resets; look again then; no metadata, no resumed partitions.
                return [], {}, left, False, []
            return actions(assignment)

        fetcher._get_actions_per_node = after_the_rest
