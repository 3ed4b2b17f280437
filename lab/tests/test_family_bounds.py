"""Bounds of what members could tell: what a newcomer is told changes its decisions."""

from __future__ import annotations

import numpy as np

from benchmarks.attempts import BILLS_LATE
from benchmarks.family_bounds import NEWCOMERS, row, sources, verifiers
from benchmarks.source_play import DELAY


def test_who_is_told_of_a_verifier_decides_otherwise_before_any_bill() -> None:
    cold, told = verifiers(0.1, 500)
    assert cold.shape == told.shape == (2, NEWCOMERS)
    assert not np.array_equal(cold[:, :BILLS_LATE], told[:, :BILLS_LATE])


def test_who_is_told_of_a_judge_decides_as_cold_until_the_first_label() -> None:
    cold, told = sources("self-preference", 501)
    assert np.array_equal(cold[:, :DELAY], told[:, :DELAY])
    assert not np.array_equal(cold, told)


def test_a_row_has_the_difference_in_pairs() -> None:
    means = np.array([[[0.5, 1.0], [0.6, 1.0]], [[0.7, 1.0], [0.8, 1.0]]])
    assert row("one", 9, means) == "| one | 9 | 0.600 (1.00) | 0.700 (1.00) | +0.1000 ± 0.0000 |"
