"""What requests with plans cost, beside what the dual's solutions said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.attempts.planned_spend import MOST_OFF, REMEMBERED, PlannedSpend
from router_state.kernel import WINDOW

EACH = 8
"""Requests from one solution to the next."""


def played(costs: float, said: float, *, solutions: int) -> PlannedSpend:
    """Return the sums after requests that cost so many budgets where another cost was said."""
    spend, debt = PlannedSpend(), 0.0
    for number in range(solutions):
        slot = number * EACH % WINDOW
        spend.count(debt, slot)
        spend.solved(said, debt, slot)
        debt += EACH * (costs - 1.0)
    return spend


@given(st.floats(0.3, 3.0), st.floats(0.3, 3.0))
def test_the_share_is_what_requests_cost_of_what_was_said(costs: float, said: float) -> None:
    spend = played(costs, said, solutions=400)
    wanted = min(max(costs / said, 1.0 / MOST_OFF), MOST_OFF)
    assert spend.is_sound
    # What was assumed before the first request still counts for a fifth.
    assert abs(np.log(spend.share) - np.log(wanted)) <= 0.5 * abs(np.log(costs / said)) + 1e-9
    assert spend.said <= REMEMBERED * said + 1e-9


def test_nothing_is_counted_before_a_solution_or_without_a_request() -> None:
    spend = PlannedSpend()
    spend.count(5.0, 3)
    assert spend.share == 1.0
    spend.solved(1.0, 5.0, 3)
    spend.count(9.0, 3)
    assert spend == PlannedSpend(mean=1.0, debt=5.0, slot=3)


@pytest.mark.parametrize("broken", [{"said": float("nan")}, {"charged": -1.0}, {"slot": WINDOW}])
def test_sums_that_cannot_be_are_found(broken: dict[str, float]) -> None:
    assert not PlannedSpend(**broken).is_sound
