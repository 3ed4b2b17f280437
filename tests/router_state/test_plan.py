"""Which calls of a plan were made, which may still be, and what is awaited."""

from __future__ import annotations

import pytest
from msgspec import structs

from router_state.config import Price
from router_state.kernel.given import Step
from router_state.plan import NOTHING, Attempt, Plan, Verdict

PRICE = Price(1.0, 1.0)
STEPS = (
    Step("a", 1.0, PRICE, "v", 0.5, 0.1),
    Step("b", 10.0, PRICE, "v", 0.5, 0.1, probability=0.4),
    Step("c", 100.0, PRICE, probability=0.1),
)
PLAN = Plan(STEPS, (NOTHING,) * 3)


def told(
    plan: Plan, number: int, *, verdict: float | None = None, usd: float | None = None
) -> Plan:
    made = plan.made[number]
    if verdict is not None:
        made = structs.replace(made, verdicts={**made.verdicts, "v": Verdict(verdict)})
    if usd is not None:
        made = structs.replace(made, cost_usd=usd)
    return plan.with_attempt(number, made)


def test_at_the_decision_all_calls_are_awaited_by_their_probabilities() -> None:
    assert PLAN.pending == (1, 2)
    assert (PLAN.last, PLAN.answered, PLAN.is_open) == (0, 0, True)
    assert PLAN.awaited_usd == pytest.approx(1.1 + 0.4 * 10.1 + 0.1 * 100.0)


def test_a_verdict_that_passes_ends_the_plan() -> None:
    plan = told(PLAN, 0, verdict=1.0)
    assert plan.pending == ()
    assert plan.awaited_usd == 1.0
    assert not told(plan, 0, usd=2.0).is_open


def test_a_verdict_that_does_not_pass_makes_the_next_call_sure_and_the_one_after_likelier() -> None:
    plan = told(told(PLAN, 0, verdict=0.0), 0, usd=2.0)
    assert (plan.last, plan.pending, plan.follows_failures(1)) == (1, (1, 2), True)
    assert plan.awaited_usd == pytest.approx(10.1 + 0.25 * 100.0)
    plan = told(told(plan, 1, usd=11.0), 1, verdict=0.0)
    assert (plan.last, plan.pending, plan.awaited_usd) == (2, (2,), 100.0)
    assert plan.answered == 1
    plan = told(plan, 2, usd=90.0)
    assert (plan.pending, plan.is_open, plan.awaited_usd, plan.spent_usd) == ((), False, 0.0, 103.0)


def test_a_bill_tells_that_a_call_was_made_whatever_the_verdict() -> None:
    plan = told(told(PLAN, 0, verdict=1.0), 1, usd=11.0)
    assert (plan.last, plan.pending) == (1, (2,))
    assert plan.is_open  # the first call's bill is still to come


def test_a_call_that_was_not_answered_counts_as_failed() -> None:
    plan = PLAN.with_attempt(0, Attempt(0.0, 0, unanswered=True))
    assert plan.failed(0) is True
    assert plan.last == 1
