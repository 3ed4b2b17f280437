"""Define the plan of a request: the calls that may follow each other, and their outcomes."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, structs

from router_state.kernel.given import Price, Vector


class Taught(NamedTuple):
    """An observation for a model's rewards: a context, shape (d,), and a value, both multiplied by
    the square root of the observation's weight.
    """

    x: Vector
    reward: float


class Step(Struct, gc=False, frozen=True, omit_defaults=True):
    """One call of a plan, and the look at its answer.

    Attributes:
        expected_cost_usd: expected cost of the call; price: price of the model at the decision.
        verify: the verifier that looks at the answer; None: none does.
        accept_at: least verdict with which the answer is returned; None: it is returned whatever
            the verdict.
        fee_usd: dollars of the verdict.
    """

    model: str
    expected_cost_usd: float
    price: Price
    verify: str | None = None
    accept_at: float | None = None
    fee_usd: float = 0.0


class Verdict(Struct, gc=False, frozen=True, omit_defaults=True):
    """A verdict in [0, 1]; `learned`: the verifier's table has learned a label with it."""

    verdict: float
    revision: int = 0
    fee_usd: float = 0.0
    learned: bool = False


class Attempt(Struct, gc=False, frozen=True, omit_defaults=True):
    """One call of a plan as it is known: its bill, and the verdicts on its answer, by verifier.

    `unanswered`: the bill so far is of a call that failed.
    """

    cost_usd: float | None = None
    revision: int = -1
    unanswered: bool = False
    verdicts: dict[str, Verdict] = {}


NOTHING = Attempt()
"""A call of which nothing is known yet."""


class Plan(Struct, gc=False, frozen=True, omit_defaults=True):
    """The calls of a request in order, and the knowledge of each. A plan is immutable: a change
    makes a new one.

    Attributes:
        goes_on: probability of the second call, as expected at the decision.
        gap: reward that the second answer loses because the first did not pass, if both models
            erred on the same prompts.
        first_propensity: probability that the first call was of this model, whatever follows.
        labelled: number of the attempt that the request's reward belongs to; −1: there is no
            reward.
        revised: weight of a revision of that reward.
    """

    steps: tuple[Step, ...]
    made: tuple[Attempt, ...]
    goes_on: float = 0.0
    gap: float = 0.0
    first_propensity: float = 1.0
    labelled: int = -1
    revised: float = 1.0

    @property
    def failed(self) -> bool | None:
        """Tell whether the first call failed: its answer did not pass, or no answer came. None: no
        verdict has come.
        """
        step = self.steps[0]
        if self.made[0].unanswered:
            return True
        one = None if step.verify is None else self.made[0].verdicts.get(step.verify)
        return None if one is None else step.accept_at is not None and one.verdict < step.accept_at

    @property
    def last(self) -> int:
        """Return the number of the last call that is known to have been made."""
        second = len(self.steps) > 1 and (self.failed or self.made[1].cost_usd is not None)
        return 1 if second else 0

    @property
    def spent_usd(self) -> float:
        """Return the dollars of the bills and verdicts that have come."""
        return sum(
            (one.cost_usd or 0.0) + sum(said.fee_usd for said in one.verdicts.values())
            for one in self.made
        )

    @property
    def awaited_usd(self) -> float:
        """Return the expected dollars of bills and verdicts that have not come."""
        found = 0.0
        step, first = self.steps[0], self.made[0]
        if first.cost_usd is None:
            found += step.expected_cost_usd
        over = first.cost_usd is not None and (
            len(self.steps) == 1 or self.made[1].cost_usd is not None
        )
        if step.verify is not None and step.verify not in first.verdicts and not over:
            found += step.fee_usd
        if len(self.steps) > 1 and self.made[1].cost_usd is None:
            failed = self.failed
            chance = self.goes_on if failed is None else float(failed)
            found += chance * (self.steps[1].expected_cost_usd + self.steps[1].fee_usd)
        return found

    @property
    def may_go_on(self) -> bool:
        """Tell whether a second call, or its bill, may still come."""
        second = len(self.steps) > 1 and self.made[1].cost_usd is None
        return second and self.failed is not False

    @property
    def is_open(self) -> bool:
        """Tell whether a bill is awaited."""
        return self.made[0].cost_usd is None or self.may_go_on

    def with_attempt(self, number: int, attempt: Attempt) -> Plan:
        """Return the plan with one call replaced."""
        made = (*self.made[:number], attempt, *self.made[number + 1 :])
        return structs.replace(self, made=made)
