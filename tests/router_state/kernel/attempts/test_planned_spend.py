"""What requests with plans cost, beside what the dual's solutions said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.kernel import WINDOW, PlannedSpend
from router_state.kernel.attempts.planned_spend import MOST_FACTOR, REMEMBERED

EACH = 8
"""Requests from one solution to the next."""


def played(costs: float, expected: float, *, solutions: int) -> PlannedSpend:
    """Return the sums after requests that cost so many budgets where another cost was said."""
    spend, debt = PlannedSpend(), 0.0
    for number in range(solutions):
        slot = number * EACH % WINDOW
        spend.count(debt, slot)
        spend.solved(expected, debt, slot)
        debt += EACH * (costs - 1.0)
    return spend


@given(st.floats(0.3, 3.0), st.floats(0.3, 3.0))
def test_the_share_is_what_requests_cost_of_what_was_said(costs: float, expected: float) -> None:
    spend = played(costs, expected, solutions=400)
    wanted = min(max(costs / expected, 1.0 / MOST_FACTOR), MOST_FACTOR)
    assert spend.is_sound
    # What was assumed before the first request still counts for a fifth.
    assert abs(np.log(spend.share()) - np.log(wanted)) <= 0.5 * abs(np.log(costs / expected)) + 1e-9
    assert spend.expected <= REMEMBERED * expected + 1e-9


def test_nothing_is_counted_before_a_solution_or_without_a_request() -> None:
    spend = PlannedSpend()
    spend.count(5.0, 3)
    assert spend.share() == 1.0
    spend.solved(1.0, 5.0, 3)
    spend.count(9.0, 3)
    assert spend.numbers == (0.0, 0.0, 1.0, 5.0, 3)


@pytest.mark.parametrize(
    "broken",
    [PlannedSpend(expected=float("nan")), PlannedSpend(charged=-1.0), PlannedSpend(slot=WINDOW)],
)
def test_sums_that_cannot_be_are_found(broken: PlannedSpend) -> None:
    assert not broken.is_sound
