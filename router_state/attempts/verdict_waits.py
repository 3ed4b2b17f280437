"""Find overdue verdicts: those that take longer than most verdicts of their verifier.

A verifier may fail on an answer, and its verdict then never comes. The second call that the verdict
would have led to is awaited until the router's longest wait ends. Money that is kept for such calls
is not spent.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from math import inf

from router_state.record import Records, RequestRecord

LEAST_VERDICT_SECONDS = 1.0
"""Least seconds after which a verdict is overdue."""
LONGER, SHORTER = 1.5, 0.98
"""Factors by which the time limit rises with a verdict that takes longer, and falls with every
other verdict: in equilibrium one verdict of twenty takes longer."""
FIRST_LONGER = 2.0
"""Time limit of the second verdict ÷ the time that the first verdict took."""
MOST_AT_ONCE = 4
"""Most overdue verdicts that are found with one decision; a decision adds one at most."""


def given(before: float, taken: float) -> float:
    """Return the seconds after which a verdict is overdue, once a verdict has taken `taken`
    seconds.

    Args:
        before: the limit before that verdict, in seconds; 0: no verdict had come yet.

    >>> given(0.0, 3.0), given(10.0, 12.0), given(10.0, 2.0)
    (6.0, 15.0, 9.8)
    """
    if before <= 0.0:
        return max(FIRST_LONGER * taken, LEAST_VERDICT_SECONDS)
    return max(before * (LONGER if taken > before else SHORTER), LEAST_VERDICT_SECONDS)


class VerdictWaits:
    """Requests with plans whose first answer awaits a verdict of one verifier.

    These requests need not be stored, as they follow from the records. A restored router assumes
    that every request whose bill is awaited awaits a verdict, too, and looks at each once its
    verdict is overdue.

    Attributes:
        verifier: its name; seconds: seconds after which its verdicts are overdue.
        queue: (time of the decision, number, id), as a heap; requests that no longer await a
            verdict are among them.
    """

    __slots__ = ("_longest", "queue", "seconds", "verifier")

    def __init__(
        self, verifier: str, opened: Mapping[str, float], given_seconds: float, longest: float
    ) -> None:
        self.verifier, self._longest = verifier, longest
        self.give(given_seconds)
        # Numbers of requests that are decided from now on are higher.
        self.queue = [(at, n - len(opened), name) for n, (name, at) in enumerate(opened.items())]
        heapify(self.queue)

    def add(self, request_id: str, decided_at: float, seq: int) -> float:
        """Add a request that was just decided; return the time at which its verdict is overdue."""
        heappush(self.queue, (decided_at, seq, request_id))
        return decided_at + self.seconds

    def came(self, request_id: str, given_seconds: float) -> None:
        """Note a verdict; mostly the one that is awaited longest."""
        if self.queue and self.queue[0][2] == request_id:
            heappop(self.queue)
        self.give(given_seconds)

    def give(self, seconds: float) -> None:
        """Set the seconds after which a verdict is overdue, at most the longest wait; 0: not
        known."""
        self.seconds = min(seconds or self._longest, self._longest)

    @property
    def due(self) -> float:
        """Return the time at which the next verdict is overdue; infinity: none is awaited."""
        return self.queue[0][0] + self.seconds if self.queue else inf

    def overdue(self, records: Records, now: float) -> list[str]:
        """Return the requests whose verdict should have come by now, the oldest first; each of them
        is found once.
        """
        found: list[str] = []
        while self.queue and self.due <= now and len(found) < MOST_AT_ONCE:
            decided_at, _, name = heappop(self.queue)
            record = records.get(name)
            # A request that was forgotten may have been asked for again.
            if record is not None and record.decided_at == decided_at and self._awaits(record):
                found.append(name)
        return found

    def _awaits(self, record: RequestRecord) -> bool:
        """Tell whether money is kept for a call that a verdict would lead to."""
        plan = record.plan if record.is_awaited else None
        if plan is None or plan.overdue or not plan.awaits_verdict:
            return False
        return plan.steps[0].verify == self.verifier
