"""What calls in flight may cost beyond their expectations is bounded, and a request is answered."""

from __future__ import annotations

import math

import numpy as np
import pytest

from router_state import kernel
from router_state.arms import Arms
from router_state.changes import Journal
from router_state.choice import Excluded
from router_state.config import Price
from router_state.costs import believed
from router_state.kernel import CostModel
from router_state.policies.live import MOST_RISKED, TOLERATED

X = np.array([0.0, 1.0])
BUDGET = 1e-3


def portfolio(*budgets: float) -> Arms:
    """Return models whose list prices are so many budgets per 1k tokens."""
    arms = Arms(2, Journal())
    for k, share in enumerate(budgets):
        price = Price(1e3 * share * BUDGET, 1e3 * share * BUDGET)
        arms.add(f"m{k:02d}", price=price, A=np.eye(2), b=np.zeros(2), now_t=0, pulls=0)
    return arms


def expected(arms: Arms) -> list[float]:
    """Return what a call of each is expected to cost."""
    return [
        one.predict(float(one.regression.theta @ X)) * one.list_price if not one.free else 0.0
        for one in arms.costs
    ]


def beyond(arms: Arms) -> list[float]:
    """Return what a call of each may cost more, in nine of ten cases."""
    return [one.beyond(cost) for cost, one in zip(expected(arms), arms.costs, strict=True)]


def most(model: CostModel, cost: float) -> float:
    """Return what one call costs at most in nine of ten cases."""
    variance = model.level + model.prior.noise
    return cost * math.exp(1.2816 * math.sqrt(variance) - variance / 2.0)


def within_risk(arms: Arms, excluded: Excluded, costs: list[float]) -> Excluded:
    """Return why each may not be called, with what the budget rules out."""
    seen = arms.look(X, 0.0)
    seen.expected_cost_usd = costs
    return kernel.within_risk(arms.costs, excluded, seen, MOST_RISKED * BUDGET, TOLERATED * BUDGET)


def left(arms: Arms) -> list[int]:
    """Return who may be called."""
    found = within_risk(arms, [None] * len(arms), expected(arms))
    return [k for k, why in enumerate(found) if why is None]


@pytest.mark.parametrize("K", [2, 5, 20, 64])
@pytest.mark.parametrize("dearest", [3.0, 30.0, 3000.0])
def test_without_a_bill_the_risk_in_flight_stays_bounded_and_somebody_is_left(
    K: int, dearest: float
) -> None:
    arms = portfolio(*np.geomspace(0.5, dearest, K).tolist())
    costs, more = expected(arms), beyond(arms)
    # Who may be the cheapest of all is called in any case: somebody has to be.
    likely = min(cost + risk for cost, risk in zip(costs, more, strict=True))
    for _ in range(600):
        open_ = left(arms)
        assert open_
        arms.played(open_[-1], 0, False)  # the dearest one, always
        risks = [
            model.awaited * risk
            for model, cost, risk in zip(arms.costs, costs, more, strict=True)
            if cost > likely
        ]
        in_flight = sum(model.awaited for model in arms.costs)
        assert math.hypot(*risks, 0.0) <= max(MOST_RISKED, TOLERATED * in_flight) * BUDGET
    for model, cost in zip(arms.costs, costs, strict=True):
        assert most(model, cost) <= MOST_RISKED * BUDGET or model.awaited == 0


def test_one_model_is_called_however_much_it_risks() -> None:
    arms = portfolio(10.0)
    for _ in range(100):
        assert left(arms) == [0]
        arms.played(0, 0, False)


def test_a_dear_model_waits_for_its_first_bill_and_is_called_again_after_it() -> None:
    arms = portfolio(0.5, 30.0)
    assert left(arms) == [0, 1]
    for _ in range(10):
        arms.played(1, 0, False)
    assert left(arms) == [0]
    costs = arms["m01"].costs
    for _ in range(30):
        costs.observe(1.0, X, known=0.0, now=0.0)
    arms.played(1, 0, False)
    assert left(arms) == [0, 1]


def test_a_model_is_out_of_reach_if_one_call_in_ten_costs_more_than_a_hundred_budgets() -> None:
    arms = portfolio(0.5, 80.0)
    believed.start(arms.costs[1], None, 80.0 * BUDGET, tokens=0.0)
    edge = MOST_RISKED * BUDGET / most(arms.costs[1], 1.0)
    for cost, why in ((0.99 * edge, None), (1.01 * edge, "out_of_reach")):
        assert within_risk(arms, [None, None], [0.5 * BUDGET, cost]) == [None, why]
    found = within_risk(arms, [None, None], expected(arms))
    assert found == [None, "out_of_reach"]
    assert within_risk(arms, ["capped", None], expected(arms)) == ["capped", None]


def test_who_was_excluded_before_stays_excluded_for_that_reason() -> None:
    arms = portfolio(0.5, 40.0, 40.0)
    for k in (1, 2):
        arms.played(k, 0, False)
    found = within_risk(arms, ["not_allowed", None, None], expected(arms))
    assert found == ["not_allowed", None, None]


def test_free_models_risk_nothing() -> None:
    arms = portfolio(0.0, 0.0)
    for _ in range(50):
        arms.played(0, 0, False)
    excluded: list[str | None] = [None, None]
    assert within_risk(arms, excluded, [0.0, 0.0]) == excluded
