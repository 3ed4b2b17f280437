"""Bounds of plans: choices that know all models gain by verdicts that tell something, only."""

from __future__ import annotations

import numpy as np

from benchmarks.attempt_bounds import FEE, bound, row, with_plans
from benchmarks.attempt_worlds import drawn


def test_a_plan_has_the_second_answer_where_the_first_is_wrong() -> None:
    judged = drawn(1)
    rewards, costs = with_plans(judged, "perfect", 0)
    K, fee = len(judged.models), FEE * judged.budget
    assert rewards.shape == costs.shape == (len(judged.contexts), K * K)
    first, second = judged.rewards[:, 0], judged.rewards[:, 1]
    np.testing.assert_array_equal(rewards[:, K], np.maximum(first, second))
    billed = judged.costs[:, 0] + fee + np.where(first > 0.0, 0.0, judged.costs[:, 1])
    np.testing.assert_allclose(costs[:, K], billed)


def test_plans_gain_by_true_verdicts_and_not_by_a_coin() -> None:
    judged = drawn(1)
    alone, planned = bound(judged, "perfect", 0)
    assert planned > alone + 0.02
    alone, planned = bound(judged, "coin", 0)
    assert abs(planned - alone) < 0.005


def test_a_row_has_the_difference_in_pairs() -> None:
    found = [(0.5, 0.51), (0.6, 0.61)]
    assert row("one", "good", found) == "| one | good | 0.550 | 0.560 | +1.00 ± 0.00 |"
