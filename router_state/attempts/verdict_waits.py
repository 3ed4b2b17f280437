"""Find the verdicts that are overdue: most of their verifier's verdicts take less time.

A verifier may fail on an answer, and its verdict then never comes. The second call that the verdict
would have led to is awaited until the router's longest wait ends. Money that is kept for such calls
is not spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf

from router_state.record import Records, RequestRecord

LEAST_SECONDS = 1.0
"""Least time that a verdict is given."""
LONGER, SHORTER = 1.5, 0.98
"""Factors by which the time given rises with a verdict that takes longer, and falls with others: in
equilibrium one verdict of twenty takes longer."""
FIRST_LONGER = 2.0
"""Factor by which the second verdict is given longer than the first one has taken."""
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
        verifier: its name; seconds: time that its verdicts are given, infinity: not known.
        awaiting: ids of these requests.
        queue: (time of the decision, number, id), as a heap; those that await nothing any more may
            be among them.
    """

    __slots__ = ("awaiting", "queue", "seconds", "verifier")

    def __init__(self, verifier: str, opened: Mapping[str, float], given_seconds: float) -> None:
        self.verifier, self.seconds, self.awaiting = verifier, inf, set(opened)
        self.give(given_seconds)
        # Numbers of requests that are decided from now on are higher.
        self.queue = [(at, n - len(opened), name) for n, (name, at) in enumerate(opened.items())]
        heapify(self.queue)

    def add(self, request_id: str, decided_at: float, seq: int) -> None:
        """Add a request that was just decided."""
        self.awaiting.add(request_id)
        heappush(self.queue, (decided_at, seq, request_id))

    def came(self, request_id: str, given_seconds: float) -> None:
        """Note a verdict."""
        self.awaiting.discard(request_id)
        self.give(given_seconds)

    def give(self, seconds: float) -> None:
        """Give verdicts this time from now on; 0: it is not known."""
        self.seconds = seconds or inf

    def overdue(self, records: Records, now: float, longest: float) -> Sequence[str]:
        """Return the requests whose verdict should have come by now, the oldest first; each of them
        is found once.

        Args:
            longest: seconds after which nothing is awaited any more.
        """
        queue, awaiting = self.queue, self.awaiting
        seconds = self.seconds if self.seconds < longest else longest
        until = now - seconds
        if not queue or queue[0][0] > until:
            return ()
        found: list[str] = []
        while queue and queue[0][0] <= until and len(found) < MOST_AT_ONCE:
            name = heappop(queue)[2]
            if name in awaiting:
                awaiting.discard(name)
                if self._awaits(records.get(name)):
                    found.append(name)
        return found

    def _awaits(self, record: RequestRecord | None) -> bool:
        """Tell whether money is kept for a call that a verdict would lead to."""
        plan = None if record is None or not record.is_awaited else record.plan
        if plan is None or plan.overdue or not plan.awaits_verdict:
            return False
        return plan.steps[0].verify == self.verifier
