"""Keep the order of the events that were applied to a router since its last decision.

Bills, rewards and declarations come on topics of their own, and only the worker knows the order in
which it applied them. So each decision publishes the events since the decision before, and a
history can be replayed to the bit. The events are a text of steps, separated by blanks.

    c12         bills up to offset 12 of `pb.costs`.
    r7          rewards up to offset 7 of `pb.rewards`.
    C9, R4      the bill at 9, the reward at 4: they had waited for the decision before.
    d3@1.5      the declaration at offset 3 of `pb.routers`, 1.5 s after the epoch; the first: d3.
    x2          two commitments expired, the oldest ones.
    f40         the requests decided up to seq 40 were forgotten.
    g41-43,45   these requests were forgotten, by their seq.
    e1.5        the grants that had ended by this time were given back.
    l5          the grants of the pool at offset 5 of `pb.leases`.
    p6          the prior of the family at offset 6 of `pb.kin`.
    t1.5        models that had retired before this time were dropped.
    ?           more than fits: the order was not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from router_state.events import OfCapability
from router_state.packing.framing import Json

MOST_STEPS = 64
"""Most steps kept between two decisions."""
MOST_LETTERS = 4_000
"""Most bytes of all steps together: enough for several hundred forgotten requests that are not in
a row.
"""
MOST_EXPLAINED = 16
"""Most decisions whose steps are kept: after a crash the last answers are published again. A
decision without steps needs no place; that is nearly every decision of a group.
"""
UNKNOWN = "?"
"""Mark of steps that were not kept."""


Packed = tuple[str, int, list[tuple[int, str]]]
"""The steps, `since_seq` and `explained`, as stored."""


class Step(NamedTuple):
    """One step; `number` is an offset, a count or a seq, `seqs` are inclusive ranges. `grant` is
    the grant, or the prior of a family, at the offset, once it was read.
    """

    kind: str
    number: int = 0
    time: float | None = None
    seqs: tuple[tuple[int, int], ...] = ()
    grant: OfCapability | None = None


@dataclass(slots=True)
class Since:
    """The steps since the last decision, and the steps before each of the last decisions.

    Steps of one kind in a row are one step.

    Attributes:
        steps: at most `MOST_STEPS` steps, or only `UNKNOWN`.
        explained: {seq: steps} of the last decisions that had any steps.
        since_seq: seq of the first decision whose steps are known.
    """

    steps: list[str] = field(default_factory=list)
    explained: dict[int, str] = field(default_factory=dict)
    since_seq: int = 1

    def pack(self) -> list[Json]:
        """Return the steps as JSON."""
        return [self.text(), self.since_seq, list(self.explained.items())]

    @classmethod
    def unpack(cls, packed: Packed) -> Since:
        """Invert `pack`, once the JSON has been converted to `Packed`."""
        text, since_seq, explained = packed
        return cls(text.split(), dict(explained), since_seq)

    def text(self) -> str:
        """Return the steps as the text that is stored and published."""
        return " ".join(self.steps)

    def decided(self, seq: int) -> None:
        """Store the noted steps as those before this decision, and begin to note those before the
        next."""
        if not self.steps:
            return
        explained = self.explained
        explained[seq], self.steps = " ".join(self.steps), []
        while len(explained) > MOST_EXPLAINED or (
            len(explained) > 1 and sum(map(len, explained.values())) > MOST_LETTERS
        ):
            self.since_seq = next(iter(explained)) + 1
            del explained[self.since_seq - 1]

    def led_to(self, seq: int) -> str | None:
        """Return the steps that led to a decision; None if they are no longer kept."""
        return self.explained.get(seq, "") if seq >= self.since_seq else None

    def billed(self, offset: int, waited: bool = False) -> None:
        """Note a bill; `waited`: the bill came before its decision. A bill without an offset (−1)
        came from no topic and is not a step.
        """
        # Bills that had waited are listed one by one: if several wait for one decision, only one
        # is booked.
        if offset >= 0:
            self._append(f"C{offset}") if waited else self._reach(f"c{offset}")

    def rewarded(self, offset: int, waited: bool = False) -> None:
        """Note a reward, see `billed`."""
        if offset >= 0:
            self._append(f"R{offset}") if waited else self._reach(f"r{offset}")

    def declared(self, offset: int, *, now: float | None = None) -> None:
        """Note a declaration that was put in force; `now` None: it is the router's first."""
        if offset >= 0:
            self._append(f"d{offset}" if now is None else f"d{offset}@{now!r}")

    def expired(self, count: int) -> None:
        """Note that the oldest `count` commitments expired."""
        if count:
            before = self._last("x")
            self._reach(f"x{count + (int(before) if before else 0)}")

    def forgotten_until(self, seq: int) -> None:
        """Note that all requests up to a decision were forgotten."""
        self._reach(f"f{seq}")

    def forgotten(self, seqs: Iterable[int]) -> None:
        """Note that some requests were forgotten, by the seq of their decisions."""
        if numbers := sorted([*_numbers(self._last("g") or ""), *seqs]):
            self._reach(f"g{_ranges(numbers)}")

    def granted(self, offset: int) -> None:
        """Note a set of grants; of several in a row the last one counts."""
        if offset >= 0:
            self._reach(f"l{offset}")

    def took_over(self, offset: int) -> None:
        """Note a prior that was taken over from the router's family."""
        if offset >= 0:
            self._append(f"p{offset}")

    def given_back(self, now: float) -> None:
        """Note that a member gave back the grants that had ended by a time."""
        before = self._last("e")
        self._reach(f"e{max(now, float(before)) if before else now!r}")

    def dropped(self, before: float) -> None:
        """Note that models which had retired before a time were dropped."""
        self._append(f"t{before!r}")

    def _last(self, kind: str) -> str | None:
        """Return the text of the last step behind its letter, if the step is of this kind."""
        return self.steps[-1][1:] if self.steps and self.steps[-1][0] == kind else None

    def _reach(self, step: str) -> None:
        if self.steps and self.steps[-1][0] == step[0]:
            self.steps.pop()
        self._append(step)

    def _append(self, step: str) -> None:
        steps = self.steps
        if steps and steps[0] == UNKNOWN:
            return
        steps.append(step)
        # The number of steps is bounded: a router without requests may get bills and rewards for
        # days.
        if len(steps) > MOST_STEPS or sum(map(len, steps)) > MOST_LETTERS:
            self.steps = [UNKNOWN]


def steps_of(text: str) -> list[Step] | None:
    """Return the steps of a text; None if they were not kept. Raises ValueError."""
    return None if text == UNKNOWN else [_step(part) for part in text.split()]


def _step(part: str) -> Step:
    kind, value = part[0], part[1:]
    match kind:
        case "c" | "r" | "C" | "R" | "x" | "f" | "l" | "p":
            return Step(kind, int(value))
        case "d":
            offset, _, time = value.partition("@")
            return Step(kind, int(offset), float(time) if time else None)
        case "t" | "e":
            return Step(kind, time=float(value))
        case "g":
            return Step(kind, seqs=tuple(_bounds(value)))
    raise ValueError(f"no step is called {part!r}")


def _bounds(value: str) -> Iterable[tuple[int, int]]:
    for part in value.split(","):
        first, _, last = part.partition("-")
        yield int(first), int(last or first)


def _numbers(value: str) -> Iterable[int]:
    return (n for first, last in _bounds(value) for n in range(first, last + 1)) if value else ()


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers as ranges: 1-3,5."""
    starts = [numbers[0], *(b for a, b in pairwise(numbers) if b != a + 1)]
    ends = [*(a for a, b in pairwise(numbers) if b != a + 1), numbers[-1]]
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
