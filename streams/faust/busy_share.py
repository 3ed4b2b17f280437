"""Measure how busy this thread is: the share of the time in which it works, or waits for a core."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOK_EVERY: Final = 0.05
"""Seconds between two looks, at least: on some machines a look takes a tenth of a millisecond."""
REMEMBERED: Final = 0.25
"""Seconds after which a look has counted for all but 1/e of what the share is."""
SCHEDULED: Final = Path("/proc/thread-self/schedstat")
"""Nanoseconds that the thread has had a core, and that it has waited for one."""


def worked() -> float:
    """Return the seconds for which this thread has worked or waited for a core; only those of work
    where the system does not measure the waits.
    """
    try:
        ran, waited, *_ = map(int, SCHEDULED.read_bytes().split())
    except (OSError, ValueError):
        ran = waited = 0
    return (ran + waited) / 1e9 if ran else time.thread_time()


class BusyShare:
    """The share of the time in which the thread that asks works, or waits for a core.

    Args:
        worked: seconds of work so far.
        clock: monotonic seconds.
    """

    def __init__(
        self, worked: Callable[[], float] = worked, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._worked, self._clock = worked, clock
        self._at, self._before, self._share = clock(), worked(), 0.0

    def __call__(self) -> float:
        """Return the share, in [0, 1], as of a look in the last `LOOK_EVERY` seconds."""
        now = self._clock()
        if (passed := now - self._at) >= LOOK_EVERY:
            worked = self._worked()
            share = min(max((worked - self._before) / passed, 0.0), 1.0)
            self._share += (share - self._share) * (1.0 - math.exp(-passed / REMEMBERED))
            self._at, self._before = now, worked
        return self._share
