"""Find overdue verdicts: those that take longer than most verdicts of their verifier.

A verifier may fail on an answer, and its verdict then never comes. The call that the verdict would
have led to is awaited until the router's longest wait ends. Money that is kept for such calls is
not spent.
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
LATER_ANSWER = 2.0
"""Time limit of a verdict on a later answer ÷ that of a verdict on the first one, both from the
decision on."""
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
    """Requests with plans whose answer awaits a verdict, where one verifier looks at the first.

    These requests need not be stored, as they follow from the records. A restored router assumes
    that every request whose bill is awaited awaits a verdict, too, and looks at each once its
    verdict is overdue.

    Attributes:
        verifier: its name; seconds: seconds after which its verdicts are overdue.
        queue: (time of the decision, number, id), as a heap; requests that no longer await a
            verdict are among them. later: the same of requests that were in the queue when another
            verdict than the first one was awaited.
    """

    __slots__ = ("_longest", "later", "queue", "seconds", "verifier")

    def __init__(
        self, verifier: str, opened: Mapping[str, float], given_seconds: float, longest: float
    ) -> None:
        self.verifier, self._longest = verifier, longest
        self.give(given_seconds)
        # Numbers of requests that are decided from now on are higher.
        self.queue = [(at, n - len(opened), name) for n, (name, at) in enumerate(opened.items())]
        heapify(self.queue)
        self.later: list[tuple[float, int, str]] = []

    def add(self, request_id: str, decided_at: float, seq: int) -> float:
        """Add a request that was just decided, or that may await a verdict again; return the time
        at which its verdict may be overdue.
        """
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
        """Return the time at which the next verdict may be overdue; infinity: none is awaited."""
        first = self.queue[0][0] + self.seconds if self.queue else inf
        return min(first, self.later[0][0] + LATER_ANSWER * self.seconds) if self.later else first

    def overdue(self, records: Records, now: float) -> list[str]:
        """Return the requests whose verdict should have come by now, the oldest first; each of them
        is found once.
        """
        found: list[str] = []
        for queue, factor in ((self.queue, 1.0), (self.later, LATER_ANSWER)):
            longest = factor * self.seconds
            while queue and queue[0][0] + longest <= now and len(found) < MOST_AT_ONCE:
                decided_at, seq, name = heappop(queue)
                record = records.get(name)
                # A request that was forgotten may have been asked for again.
                if record is None or record.decided_at != decided_at or name in found:
                    continue
                answer = self._awaits(record)
                if answer and queue is self.queue:
                    heappush(self.later, (decided_at, seq, name))
                elif answer is not None:
                    found.append(name)
        return found

    def _awaits(self, record: RequestRecord) -> int | None:
        """Return the number of the answer that awaits a verdict, where money is kept for the call
        that the verdict would lead to."""
        plan = record.plan if record.is_awaited else None
        if plan is None or plan.overdue or plan.steps[0].verify != self.verifier:
            return None
        return plan.awaits_verdict
