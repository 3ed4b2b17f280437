"""The queue of one router in a merge: events that are read but not yet due, and decided
requests.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from studies.history.happened import Billed, Declared, Feedback, Rewarded
from studies.history.reading import Decision
from studies.history.records import Record


@dataclass(slots=True)
class Queue:
    """The queue of one router.

    Attributes:
        decided, config_offset: of the last decision, its seq and the offset of its declaration.
        anew: whether the router was removed and declared again, although no tombstone was read yet.
        early: decisions whose turn has not come, by seq.
        orphans: feedback that waits for its decision, by request_id.
        held: feedback that had waited for the last decision; the next decision's steps tell which
            of it was applied.
        seen: {request_id: seq} of the latest decisions, in their order, and {session: seq}.
    """

    declarations: deque[Declared] = field(default_factory=deque)
    bills: deque[Billed] = field(default_factory=deque)
    rewards: deque[Rewarded] = field(default_factory=deque)
    decided: int = 0
    config_offset: int = -1
    anew: bool = False
    early: dict[int, tuple[Record, Decision]] = field(default_factory=dict)
    orphans: OrderedDict[str, list[Feedback]] = field(default_factory=OrderedDict)
    held: list[Feedback] = field(default_factory=list)
    seen: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def wait(self, request_id: str, event: Feedback) -> None:
        """Let feedback wait for its decision."""
        self.orphans.setdefault(request_id, []).append(event)

    def decide(self, subjects: Iterable[str], seq: int) -> None:
        """Note the decision of a request, and of the session that it belongs to."""
        for subject in subjects:
            self.seen.pop(subject, None)
            self.seen[subject] = seq

    def hold(self, subjects: Iterable[str]) -> None:
        """Move feedback that waited for this decision to `held`."""
        self.held = [event for subject in subjects for event in self.orphans.pop(subject, [])]

    def take_held(self) -> list[Feedback]:
        """Return the held feedback as a worker applies it: the bill of the highest revision, then
        the rewards in order."""
        held, self.held = self.held, []
        bills = [event for event in held if type(event) is Billed]
        # The first of them, as `max` returns it.
        bill = [max(bills, key=lambda event: event.bill.revision)] if bills else []
        rewards = [event for event in held if type(event) is Rewarded]
        return [*bill, *rewards]

    def take_named(self, kind: type[Feedback], offset: int) -> list[Feedback]:
        """Return one event of the held feedback."""
        return [e for e in self.held if type(e) is kind and e.offset == offset]

    def forget_until(self, seq: int) -> None:
        """Forget the requests up to a decision; feedback for these requests waits from then on."""
        seen = self.seen
        while seen and next(iter(seen.values())) <= seq:
            seen.popitem(last=False)

    def forget(self, seqs: Iterable[tuple[int, int]]) -> None:
        """Forget some requests, by ranges of their decisions, with both ends."""
        numbers = {n for first, last in seqs for n in range(first, last + 1)}
        gone, most = [], max(numbers, default=0)
        for request_id, seq in self.seen.items():
            if seq > most:
                break
            if seq in numbers:
                gone.append(request_id)
        for request_id in gone:
            del self.seen[request_id]
