"""Measure how long bills and rewards have waited for their group, and limit the requests of a
group accordingly.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Final

from ground.messages import Record, key_text
from schemas.event import MalformedEvent
from schemas.quick import Bill, Reward, read

REQUESTS_AT_LEAST: Final = 8
"""One in this many events of a group may always be a request. So a request next to a backlog of
bills does not wait for all of them, and a request may bring seven bills and labels.
"""
KINDS: Final[Mapping[str, type[Bill | Reward]]] = {"costs": Bill, "rewards": Reward}


class Arrivals:
    """The arrivals of a queue: at each look, the records that have come since the look before."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        # (offset of the last record, time of the look), oldest first
        self._marks: deque[tuple[int, float]] = deque()

    def since(self, queue: deque[Record], now: float) -> float:
        """Return the time since which the first record has waited; infinity if there is none."""
        marks = self._marks
        if not queue or (marks and queue[-1].offset < marks[-1][0]):
            marks.clear()  # the queue ran empty, or is read again
        if not queue:
            return math.inf
        if not marks or queue[-1].offset > marks[-1][0]:
            marks.append((queue[-1].offset, now))
        while marks[0][0] < queue[0].offset:
            marks.popleft()
        return marks[0][1]


class Waits:
    """The waits of one partition's feedback: of all its source topics but the requests.

    Time counts from the moment at which the worker fetched an event; clients' clocks do not
    matter.

    Args:
        knows: function that tells whether a request of a router, or any request of a session, is
            decided.
        queues: waiting events of each topic, by its name without the prefix.
        clock: function that returns monotonic seconds.
    """

    def __init__(
        self,
        knows: Callable[[str, str], bool],
        queues: Mapping[str, deque[Record]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._knows, self._clock = knows, clock
        self._queues = {
            name: queue for name, queue in queues.items() if name not in ("requests", "routers")
        }
        self._arrivals = {name: Arrivals() for name in self._queues}
        self._owed = 0.0

    def since(self) -> float:
        """Return the time since which the oldest applicable event has waited, as far as looks at
        the queue have shown; infinity if none waits.
        """
        now = self._clock()
        return min(
            (
                self._arrivals[name].since(queue, now)
                for name, queue in self._queues.items()
                if not queue or self._is_due(name)
            ),
            default=math.inf,
        )

    def longest(self) -> float:
        """Return the seconds for which the oldest applicable event has waited; 0 if none waits."""
        return max(self._clock() - self.since(), 0.0)

    def _is_due(self, name: str) -> bool:
        """Tell whether the first event of a topic can be applied. An event that came before its
        request needs the request first.
        """
        head = self._queues[name][0]
        if (kind := KINDS.get(name)) is None:
            return True
        try:
            event = read(kind, key=head.key, value=head.value)
        except MalformedEvent:
            return True
        return self._knows(event.router_id, event.subject)

    def requests(self, size: int) -> int:
        """Return the number of requests that the next group of this size may have.

        Feedback that waits goes first: an endless stream of requests would leave it waiting for
        ever, and would be decided without it. Fractions of the least share add up over groups.
        """
        due = sum(
            len(queue) for name, queue in self._queues.items() if queue and self._is_due(name)
        )
        self._owed = self._owed % 1.0 + size / REQUESTS_AT_LEAST
        return max(size - due, int(self._owed))

    def routers(self) -> Counter[str]:
        """Return the number of waiting events of each router."""
        return Counter(key_text(record) for queue in self._queues.values() for record in queue)
