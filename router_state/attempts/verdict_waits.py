"""Find the verdicts that are overdue: most of their verifier's verdicts take less time.

A verifier may fail on an answer, and its verdict then never comes. The second call that the verdict
would have led to is awaited until the router's longest wait ends. Money that is kept for such calls
is not spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from math import inf

from router_state.record import Records

LEAST_SECONDS = 1.0
"""Least time that a verdict is given."""
LONGER, SHORTER = 1.5, 0.98
"""Factors by which the time given rises with a verdict that takes longer, and falls with others: in
equilibrium one verdict of twenty takes longer."""
FIRST_LONGER = 2.0
"""Times of the first verdict that the second one is given."""
MOST_AT_ONCE = 4
"""Most overdue verdicts that are found with one decision; a decision adds one at most."""


def given(before: float, taken: float) -> float:
    """Return the seconds that verdicts are given, once one has taken `taken` seconds.

    Args:
        before: seconds that were given before; 0: no verdict has come yet.

    >>> given(0.0, 3.0), given(10.0, 12.0), given(10.0, 2.0)
    (6.0, 15.0, 9.8)
    """
    if before <= 0.0:
        return max(FIRST_LONGER * taken, LEAST_SECONDS)
    return max(before * (LONGER if taken > before else SHORTER), LEAST_SECONDS)


class VerdictWaits:
    """Requests with plans whose first answer awaits a verdict of one verifier.

    What is kept follows from the requests, so that it need not be stored: a restored router takes
    all requests whose bills are awaited for such ones, and looks at each once its time has come.

    Attributes:
        awaiting: ids of these requests.
        queue: (time of the decision, number, id), as a heap; those that await nothing any more may
            be among them.
    """

    __slots__ = ("awaiting", "queue")

    def __init__(self, opened: Mapping[str, float]) -> None:
        self.awaiting = set(opened)
        # Numbers of requests that are decided from now on are higher.
        self.queue = [(at, n - len(opened), name) for n, (name, at) in enumerate(opened.items())]
        heapify(self.queue)

    def add(self, request_id: str, decided_at: float, seq: int) -> None:
        """Add a request that was just decided."""
        self.awaiting.add(request_id)
        heappush(self.queue, (decided_at, seq, request_id))

    def overdue(self, verifier: str, records: Records, until: float) -> Iterator[str]:
        """Yield the requests that were decided until a time and still await the verdict, the oldest
        first; each of them is found once.
        """
        left, queue = MOST_AT_ONCE, self.queue
        while left and queue and queue[0][0] <= until:
            _, _, name = heappop(queue)
            if name not in self.awaiting:
                continue
            self.awaiting.discard(name)
            record = records.get(name)
            plan = None if record is None or not record.is_awaited else record.plan
            if plan is None or plan.overdue or not plan.awaits_verdict:
                continue
            if plan.steps[0].verify == verifier:
                left -= 1
                yield name


def until_of(now: float, seconds: float, longest: float) -> float:
    """Return the time until which a request was decided whose verdict is overdue.

    Args:
        seconds: that verdicts are given; 0: not known. longest: the router's longest wait.
    """
    return now - min(seconds if seconds > 0.0 else inf, longest)
