"""Follow the plans of requests: which calls were billed and what verdicts said of their answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas import CostReported, RewardObserved, RouteDecided
from schemas.verifiers import PlanStep


@dataclass(slots=True)
class Planned:
    """The calls of one request's plan, as far as they are known.

    Attributes:
        bills: revision and dollars of each billed call, by the call's number; verdicts: revision
            and value of each call's verdict, likewise; fees_usd: cost of all verdicts in dollars.
        labelled: number of the call whose answer the label is about.
    """

    steps: tuple[PlanStep, ...]
    bills: dict[int, tuple[int, float]] = field(default_factory=dict)
    verdicts: dict[int, tuple[int, float]] = field(default_factory=dict)
    fees_usd: float = 0.0
    labelled: int = 0

    def __contains__(self, number: int) -> bool:
        return 0 <= number < len(self.steps)

    @property
    def spent_usd(self) -> float | None:
        """Return what the calls and the verdicts cost so far; None before the first bill."""
        return sum(usd for _, usd in self.bills.values()) + self.fees_usd if self.bills else None

    @property
    def went_on(self) -> bool | None:
        """Tell whether the second call was made; None: not known yet, or there is none planned."""
        if len(self.steps) < 2:
            return None
        if any(number > 0 for number in self.bills):
            return True
        return self._failed(0) if 0 in self.verdicts else None

    def rewarded(self, event: RewardObserved) -> int | None:
        """Return the number of the call that a reward is about; None: the plan has no such call."""
        models = [step.model for step in self.steps]
        if event.attempt is not None:
            return event.attempt if event.attempt in self else None
        if event.model is not None:
            return models.index(event.model) if event.model in models else None
        return self.last

    @property
    def last(self) -> int:
        """Number of the last call that is known to have been made."""
        number = max(self.bills, default=0)
        while number + 1 < len(self.steps) and self._failed(number):
            number += 1
        return number

    def _failed(self, number: int) -> bool:
        """Tell whether the answer of a call is known not to have passed."""
        least, said = self.steps[number].accept_at, self.verdicts.get(number)
        return said is not None and least is not None and said[1] < least

    def bill(self, event: CostReported, cost_usd: float) -> bool:
        """Note a call's bill; tell whether the bill says anything new."""
        number = event.attempt or 0
        if number not in self or event.revision <= self.bills.get(number, (-1, 0.0))[0]:
            return False
        self.bills[number] = event.revision, cost_usd
        return True

    def judge(self, event: RewardObserved) -> bool:
        """Note the verdict of the plan's verifier on a call; tell whether the verdict is new."""
        number, value = event.attempt or 0, event.verdict
        if value is None or number not in self or event.verifier != self.steps[number].verify:
            return False
        before = self.verdicts.get(number)
        if before is not None and event.revision <= before[0]:
            return False
        if before is None:
            self.fees_usd += self.steps[number].verdict_usd or 0.0
        self.verdicts[number] = event.revision, value
        return True


@dataclass(slots=True)
class OfVerifier:
    """Sums over the plans of one verifier.

    Attributes:
        planned: number of plans of several calls.
        known: number of plans whose first answer has a verdict.
        went_on: number of plans whose first answer did not pass.
        gain, saved_usd: expected gain of reward and saving of dollars, summed over plans, against
            the single call that each plan replaces.
    """

    planned: int = 0
    known: int = 0
    went_on: int = 0
    gain: float = 0.0
    saved_usd: float = 0.0


@dataclass(slots=True)
class Plans:
    """The plans of a router, by the verifier of the first answer."""

    by: dict[str, OfVerifier] = field(default_factory=dict)

    def decide(self, decision: RouteDecided) -> None:
        """Add a decision's plan of several calls."""
        steps = decision.plan or ()
        if len(steps) < 2 or steps[0].verify is None:
            return
        found = self.by.setdefault(steps[0].verify, OfVerifier())
        found.planned += 1
        open_ones = [one for one in decision.candidates or () if one.excluded is None]
        if open_ones:
            alone = max(open_ones, key=lambda one: one.score)
            found.gain += decision.expected_reward - alone.mean
            found.saved_usd += alone.expected_cost_usd - decision.expected_cost_usd

    def move(self, plan: Planned, before: bool | None) -> None:
        """Count how far a plan went, which was known as `before`."""
        found = self.by.get(plan.steps[0].verify or "")
        now = plan.went_on
        if found is not None and now != before:
            found.known += (now is not None) - (before is not None)
            found.went_on += bool(now) - bool(before)

    @property
    def planned(self) -> int:
        """Number of plans."""
        return sum(one.planned for one in self.by.values())

    @property
    def gain(self) -> float:
        """Σ reward that plans were expected to gain."""
        return sum(one.gain for one in self.by.values())

    @property
    def saved_usd(self) -> float:
        """Σ dollars that plans were expected to save."""
        return sum(one.saved_usd for one in self.by.values())
