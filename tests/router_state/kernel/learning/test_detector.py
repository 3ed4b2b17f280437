"""The detector: found soon, hardly ever by chance, and prompts of a new kind are told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.kernel import CUT_AT, LIMIT, Detector, Shift

Residuals = np.ndarray


def watched(residuals: Residuals, leverages: Residuals | None = None) -> list[Shift | None]:
    """Return what each residual of deviation 1 gives away."""
    detector = Detector()
    if leverages is None:
        leverages = np.ones(len(residuals))
    return [
        detector.observe(residual, deviation=1.0, leverage=leverage, now=float(n))
        for n, (residual, leverage) in enumerate(
            zip(residuals.tolist(), leverages.tolist(), strict=True)
        )
    ]


@given(st.floats(0.02, 0.5), st.sampled_from([-1.0, 1.0]), st.integers(0, 100))
def test_a_shift_of_two_deviations_is_found_within_sixty_residuals(
    sigma: float, sign: float, seed: int
) -> None:
    rng, detector = np.random.default_rng(seed), Detector()
    for residual in sigma * rng.normal(size=200):
        detector.observe(residual, deviation=sigma, leverage=1.0, now=0.0)
    for i in range(60):
        shift = detector.observe(
            sigma * (2.0 * sign + rng.normal()), deviation=sigma, leverage=1.0, now=float(i)
        )
        if shift is not None:
            assert np.sign(shift.size) == sign and shift.residuals <= 60 and shift.since <= i
            return
    pytest.fail("not found")


@pytest.mark.parametrize("tails", [3, 30])
def test_noise_alone_raises_less_than_one_alarm_in_five_thousand(tails: int) -> None:
    found = watched(np.random.default_rng(0).standard_t(tails, size=50_000))
    assert sum(shift is not None for shift in found) <= 10


def test_no_residual_alone_is_a_change_and_three_in_a_row_that_are_far_out_are() -> None:
    quiet = np.tile([0.6, -0.6], 50)
    for behind, found in (([9.0] * 3, True), ([9.0, 0.0, 9.0, 0.0, 9.0], False), ([1e9], False)):
        shifts = watched(np.array([*quiet, *behind]))
        assert (shifts[-1] is not None) == found
        assert not any(shifts[:-1])
    assert CUT_AT**2 / 2.0 < LIMIT


def test_residuals_of_a_tight_signal_are_held_against_what_all_models_show() -> None:
    detector = Detector()
    for n in range(1000):
        detector.observe(0.001 * (-1) ** n, deviation=1.0, leverage=1.0, now=0.0)
    assert not any(detector.observe(0.4, deviation=1.0, leverage=1.0, now=0.0) for _ in range(1000))


def test_a_shift_with_prompts_as_ever_is_of_the_model_whatever_their_distribution() -> None:
    rng = np.random.default_rng(0)
    for draw in (rng.chisquare(1, 1500), rng.chisquare(25, 1500), rng.standard_t(4, 1500) ** 2):
        novel = []
        for seed in range(50):
            residuals = np.append(np.random.default_rng(seed).normal(size=400), np.full(20, 3.0))
            found = next(shift for shift in watched(residuals, rng.choice(draw, 420)) if shift)
            novel.append(found.novel)
        assert np.mean(novel) < 0.1


def test_a_shift_with_prompts_of_another_kind_is_of_the_prompts_until_they_are_usual() -> None:
    rng = np.random.default_rng(1)
    usual, others = rng.chisquare(25, 600), 4.0 * rng.chisquare(25, 4000)
    residuals = np.append(rng.normal(size=600), np.full(10, 3.0))
    found = next(one for one in watched(residuals, np.append(usual, others[:10])) if one)
    assert found.novel
    residuals = np.append(rng.normal(size=4600), np.full(10, 3.0))
    leverages = np.concatenate([usual, others, others[:10]])
    found = next(one for one in watched(residuals, leverages) if one)
    assert not found.novel


def test_prompts_that_are_all_alike_are_not_new() -> None:
    residuals = np.append(np.zeros(100), np.full(10, 3.0))
    for leverage in (0.0, 1.0):
        found = next(one for one in watched(residuals, np.full(110, leverage)) if one)
        assert not found.novel and math.isclose(found.size, 3.0)
