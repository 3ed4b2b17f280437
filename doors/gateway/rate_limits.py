"""Limit the rate of a caller's events and the memory for recent decisions."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

Ref = tuple[str, str]


class Allowance:
    """A bucket of tokens for each caller: `rate` a second, at most `burst` saved up.

    A call takes a token for each event. A call of more than `burst` events waits until the bucket
    is full, and leaves a debt.

    >>> allowance = Allowance(rate=2.0, burst=10.0, clock=lambda: 0.0)
    >>> allowance.take("caller", 10), allowance.take("caller", 1)
    (0.0, 0.5)
    """

    def __init__(
        self, rate: float, *, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str, events: int) -> float:
        """Take tokens, and return 0; or take none, and return the seconds until there are
        enough.
        """
        now = self._clock()
        left, at = self._left.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        wanted = min(float(events), self._burst)
        if left < wanted:
            self._left[caller] = left, now
            return (wanted - left) / self._rate
        # Negative after a batch larger than the bucket: this debt slows the calls after it.
        self._left[caller] = left - events, now
        return 0.0


class Recent:
    """The last decisions as they are on `pb.routes`, up to a number of bytes; a request keeps its
    first answer.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._values: OrderedDict[Ref, bytes] = OrderedDict()

    def put(self, ref: Ref, value: bytes, *, repeat: bool) -> None:
        """Keep a decision."""
        if ref in self._values and repeat:
            return
        self._bytes += len(value) - len(self._values.pop(ref, b""))
        self._values[ref] = value
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._values.popitem(last=False)[1])

    def get(self, ref: Ref) -> bytes | None:
        """Return a decision, or None where it is no longer kept."""
        return self._values.get(ref)


class Bounds(NamedTuple):
    """The limits of a request to the gateway: bytes of its body, events in it, seconds until it was
    sent.
    """

    body_bytes: int
    events: int
    seconds: float
