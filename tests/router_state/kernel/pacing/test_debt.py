"""What is owed is paid back as far as chance does not explain it, and savings are bounded."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from router_state.kernel import HORIZON, SAVED, Debt

budgets = st.floats(1e-6, 1e2)
owed = st.floats(-1e3, 1e3)
"""In budgets."""
cheapest = st.floats(0.0, 1.5)
"""In budgets."""
scatters = st.floats(0.0, 20.0)
"""Deviation of a bill around its expectation, in budgets."""


def debt(usd: float, scatter: float, budget: float) -> Debt:
    """Return a debt of so many budgets, with bills that scatter by so many."""
    return Debt(usd=usd * budget, scatter=(scatter * budget) ** 2)


@given(budgets, cheapest, scatters)
def test_who_owes_nothing_may_spend_the_budget(b: float, low: float, scatter: float) -> None:
    assert debt(0.0, scatter, b).target(b, low * b) == b


@given(budgets, owed, scatters)
def test_a_budget_s_unit_does_not_matter(b: float, usd: float, scatter: float) -> None:
    found = debt(usd, scatter, b).target(b, 0.3 * b)
    assert found / b == pytest.approx(debt(usd, scatter, 1.0).target(1.0, 0.3), rel=1e-9)


@given(st.floats(0.1, 20.0), st.floats(-0.3, 0.3))
def test_what_chance_explains_is_left_to_chance(scatter: float, share: float) -> None:
    # n bills of deviation s move the debt by √n·s by chance: of a third of that less than a tenth
    # is paid back over n requests.
    usd = share * math.sqrt(HORIZON) * scatter
    paid = 1.0 - debt(usd, scatter, 1.0).target(1.0, 0.0)
    assert abs(paid) <= 0.1 * abs(usd) / HORIZON


@given(st.floats(0.1, 10.0), st.floats(0.0, 0.5))
def test_what_is_far_more_than_chance_is_paid_back_within_the_horizon(
    usd: float, scatter: float
) -> None:
    assume(usd > 10.0 * math.sqrt(HORIZON) * scatter)
    paid = 1.0 - debt(usd, scatter, 1.0).target(1.0, 0.0)
    # What it takes of a request leaves some of what the cheapest models save, here one budget.
    assert paid == pytest.approx(usd / math.hypot(HORIZON, usd), rel=0.01)


@given(owed, owed, scatters)
def test_who_owes_more_may_spend_less(one: float, other: float, scatter: float) -> None:
    low, high = sorted((one, other))
    targets = [debt(usd, scatter, 1.0).target(1.0, 0.0) for usd in (low, high)]
    assert targets[1] <= targets[0]


@given(owed, scatters, st.floats(0.0, 1.0))
def test_the_target_is_never_below_the_cheapest_and_there_where_much_is_owed(
    usd: float, scatter: float, low: float
) -> None:
    target = debt(usd, scatter, 1.0).target(1.0, low)
    assert target >= low - 1e-12
    assert debt(1e7, scatter, 1.0).target(1.0, low) == pytest.approx(low, abs=1e-4)


@given(owed, scatters, st.floats(1.0, 10.0))
def test_where_even_the_cheapest_are_above_the_budget_the_target_is_at_least_the_budget(
    usd: float, scatter: float, low: float
) -> None:
    assert debt(usd, scatter, 1.0).target(1.0, low) >= 1.0


@given(st.floats(-1e6, 0.0), scatters)
def test_savings_are_bounded_and_so_is_what_they_allow(usd: float, scatter: float) -> None:
    one = debt(usd, scatter, 1.0)
    assert 1.0 <= one.target(1.0, 0.0) <= 1.0 - usd / HORIZON
    one.bound(1.0)
    assert one.usd == max(usd, -SAVED)
    # What is left is spent within a thousand requests at the earliest: 2.5 % above the budget.
    assert one.target(1.0, 0.0) <= 1.0 + SAVED / HORIZON


@given(st.floats(0.0, 1e6))
def test_a_debt_is_never_given_up(usd: float) -> None:
    one = debt(usd, 1.0, 1.0)
    one.bound(1.0)
    assert one.usd == usd


@pytest.mark.parametrize("off", [0.0, 0.5, 3.0])
def test_the_scatter_is_the_mean_square_of_what_bills_are_off(off: float) -> None:
    one = Debt()
    for number in range(5000):
        one.note(off if number % 2 else -off, budget_usd=1.0)
    assert one.scatter == pytest.approx(off**2, abs=0.02)


def test_one_bill_that_is_far_off_is_no_matter_of_chance() -> None:
    one, other = Debt(), Debt()
    one.note(1e6, budget_usd=1.0)
    other.note(SAVED, budget_usd=1.0)
    assert one.scatter == other.scatter
