"""Define the plan of a request: the calls that may follow each other, and their outcomes."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, structs

from router_state.kernel.given import Step, Vector


class Taught(NamedTuple):
    """An observation for a model's rewards: a context, shape (d,), and a value, both multiplied by
    the square root of the observation's weight.
    """

    x: Vector
    reward: float


class Verdict(Struct, gc=False, frozen=True, omit_defaults=True):
    """A verdict in [0, 1]; `learned`: the verifier's table has learned a label with it."""

    verdict: float
    revision: int = 0
    fee_usd: float = 0.0
    learned: bool = False


class Attempt(Struct, gc=False, frozen=True, omit_defaults=True):
    """The outcome of one call of a plan so far: its bill, and the verdicts on its answer, by
    verifier. `unanswered`: the bill so far is of a failed call. `redirected`: another model than
    the called one answered.
    """

    cost_usd: float | None = None
    revision: int = -1
    unanswered: bool = False
    verdicts: dict[str, Verdict] = {}
    redirected: bool = False


NOTHING = Attempt()
"""A call of which nothing is known yet."""


class Plan(Struct, gc=False, frozen=True, omit_defaults=True):
    """The calls of a request in order, and the knowledge of each. A plan is immutable: a change
    makes a new one.

    Attributes:
        first_propensity: probability that the first call was of this model, whatever follows.
        labelled: number of the attempt that the request's reward belongs to; −1: there is no
            reward.
        revised: weight of a revision of that reward.
        overdue: whether the verdict that the plan waits for should have come by now: until one
            comes, no money is kept for it and for the calls behind it.
    """

    steps: tuple[Step, ...]
    made: tuple[Attempt, ...]
    first_propensity: float = 1.0
    labelled: int = -1
    revised: float = 1.0
    overdue: bool = False

    def failed(self, number: int) -> bool | None:
        """Tell whether a call failed: its answer did not pass, or no answer came. None: no verdict
        has come.
        """
        step, made = self.steps[number], self.made[number]
        if made.unanswered:
            return True
        one = None if step.verify is None else made.verdicts.get(step.verify)
        return None if one is None else step.accept_at is not None and one.verdict < step.accept_at

    def follows_failures(self, number: int) -> bool:
        """Tell whether all calls before this one are known to have failed."""
        return number > 0 and all(self.failed(before) for before in range(number))

    @property
    def last(self) -> int:
        """Return the number of the last call that is known to have been made."""
        for number in range(len(self.steps) - 1, 0, -1):
            if self._is_made(number):
                return number
        return 0

    def _is_made(self, number: int) -> bool:
        return self.made[number].cost_usd is not None or self.follows_failures(number)

    @property
    def answered(self) -> int:
        """Return the number of the last call with a bill or a verdict."""
        told = (one.cost_usd is not None or bool(one.verdicts) for one in self.made)
        return max((number for number, is_told in enumerate(told) if is_told), default=0)

    @property
    def pending(self) -> tuple[int, ...]:
        """Return the numbers of the later calls that may still be billed."""
        number = len(self.made) - 1
        while number > 0 and self.made[number].cost_usd is None:
            number -= 1
        found, number = [], number + 1
        while number < len(self.steps) and self.failed(number - 1) is not False:
            found.append(number)
            number += 1
        return tuple(found)

    @property
    def awaits_verdict(self) -> int | None:
        """Return the number of the answer whose verdict decides whether another call follows; None:
        no such verdict is awaited."""
        for number, later in enumerate(self.made[1:]):
            if later.cost_usd is None and (failed := self.failed(number)) is not True:
                return number if failed is None else None
        return None

    @property
    def was_decided(self) -> bool:
        """Tell whether the plan came with the decision; otherwise it holds verdicts on the only
        answer."""
        return len(self.steps) > 1 or self.steps[0].verify is not None

    @property
    def spent_usd(self) -> float:
        """Return the dollars of the bills and verdicts that have come."""
        found = 0.0
        for one in self.made:
            fees = 0.0
            for said in one.verdicts.values():
                fees += said.fee_usd
            found += (one.cost_usd or 0.0) + fees
        return found

    @property
    def awaited_usd(self) -> float:
        """Return the expected dollars of bills and verdicts that have not come."""
        found, chance = 0.0, 1.0
        for number, (step, made) in enumerate(zip(self.steps, self.made, strict=True)):
            if made.cost_usd is not None:
                chance = 1.0
            elif number > 0:
                chance *= self._chance_of(number)
            if chance <= 0.0:
                break
            if made.cost_usd is None:
                found += chance * step.expected_cost_usd
            if step.verify is None or step.verify in made.verdicts or self.overdue:
                continue
            if not self._over(number):
                found += chance * step.fee_usd
        return found

    def _chance_of(self, number: int) -> float:
        """Return the probability of a call, given that the one before is made."""
        failed = self.failed(number - 1)
        if failed is not None or self.overdue:
            return float(failed or False)
        before = self.steps[number - 1].probability
        return self.steps[number].probability / before if before > 0.0 else 0.0

    def _over(self, number: int) -> bool:
        """Tell whether a call is billed and nothing follows it, or that is billed, too: its verdict
        is no longer awaited.
        """
        if self.made[number].cost_usd is None:
            return False
        return number == len(self.steps) - 1 or self.made[number + 1].cost_usd is not None

    @property
    def is_open(self) -> bool:
        """Tell whether a bill is awaited."""
        return bool(self.pending) or any(one.cost_usd is None for one in self.made[: self.last + 1])

    def with_attempt(self, number: int, attempt: Attempt) -> Plan:
        """Return the plan with one call replaced."""
        made = (*self.made[:number], attempt, *self.made[number + 1 :])
        return structs.replace(self, made=made)
