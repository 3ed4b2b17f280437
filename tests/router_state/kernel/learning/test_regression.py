"""One Gaussian regression with forgetting: equal to the closed form, and to scikit-learn's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.changes import Journal
from router_state.errors import NonFiniteInput
from router_state.kernel import RIDGE_FLOOR, TAILS, WIDE, Regression
from tests.router_state.core_reference import Array

DIMENSIONS = [2, 26, WIDE, WIDE + 6]


def started(d: int, *, ridge: float = 1.0) -> Regression:
    """Return a regression that knows nothing but its ridge."""
    regression = Regression("m", d, Journal())
    regression.start(ridge * np.eye(d), np.zeros(d))
    return regression


def contexts(n: int, d: int, seed: int = 0) -> Array:
    """Return contexts of which the last entry is 1.0."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[:, -1] = 1.0
    return X


@pytest.mark.parametrize("gamma", [1.0, 0.97])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_one_by_one_equals_the_sums_that_forget(d: int, gamma: float) -> None:
    regression, rng = started(d, ridge=2.0), np.random.default_rng(d)
    A, b = 2.0 * np.eye(d), np.zeros(d)
    for t, x in enumerate(contexts(40, d), 1):
        y = float(rng.normal())
        regression.forget(t=t, gamma=gamma)
        A, b = gamma * A, gamma * b
        residual, variance = regression.observe(x, y)
        assert residual == pytest.approx(y - x @ np.linalg.solve(A, b), abs=1e-8)
        assert variance == pytest.approx(x @ np.linalg.solve(A, x), rel=1e-8)
        A, b = A + np.outer(x, x), b + y * x
    np.testing.assert_allclose(regression.theta, np.linalg.solve(A, b), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(regression.A_inv(), np.linalg.inv(A), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(regression.A(), A, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(regression.b(), b, rtol=1e-7, atol=1e-7)
    assert (regression.V() == regression.V().T).all()


@pytest.mark.parametrize("d", DIMENSIONS)
def test_it_is_scikit_learn_s_bayesian_ridge_at_equal_precisions(d: int) -> None:
    from sklearn.linear_model import BayesianRidge

    rng, X = np.random.default_rng(1), contexts(3 * d, d)
    y = X @ rng.normal(size=d) + 0.3 * rng.normal(size=len(X))
    noise, weights, sure = 1.0 / 0.3**2, 2.0, 1e12  # precisions, and how sure: they stay
    other = BayesianRidge(
        alpha_1=sure,
        alpha_2=sure / noise,
        lambda_1=sure,
        lambda_2=sure / weights,
        fit_intercept=False,
    ).fit(X, y)
    regression = started(d, ridge=weights / noise)
    for x, value in zip(X, y, strict=True):
        regression.observe(x, float(value))
    np.testing.assert_allclose(regression.theta, other.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(regression.V() / noise, other.sigma_, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_revised_value_counts_as_if_it_had_been_the_first(d: int) -> None:
    left, right = started(d), started(d)
    X = contexts(25, d)
    for t, x in enumerate(X, 1):
        for regression, first in ((left, 0.2), (right, 0.9)):
            regression.forget(t=t, gamma=0.98)
            regression.observe(x, first if t == 5 else 0.5)
        if t == 5:
            then = left.forgotten
    left.revise(X[4], difference=0.7, discount=math.exp(then - left.forgotten))
    np.testing.assert_allclose(left.theta, right.theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(left.V(), right.V())


@given(ridge=st.floats(1e-3, 10.0), gamma=st.floats(0.5, 0.95))
def test_less_than_a_tenth_of_the_ridge_is_never_left(ridge: float, gamma: float) -> None:
    regression, A, b = started(3, ridge=ridge), ridge * np.eye(3), np.zeros(3)
    for t, x in enumerate(contexts(30, 3), 1):
        A, b, left = gamma * A, gamma * b, gamma * regression.decay
        if left < RIDGE_FLOOR:
            A += (1.0 - left) * ridge * np.eye(3)
        regression.forget(t=t, gamma=gamma, ridge=ridge)
        assert regression.decay >= RIDGE_FLOOR
        regression.observe(x, 0.5)
        A, b = A + np.outer(x, x), b + 0.5 * x
    np.testing.assert_allclose(regression.A(), A, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(regression.theta, np.linalg.solve(A, b), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_what_fades_keeps_its_prediction_and_a_share_of_its_observations(d: int) -> None:
    regression = started(d)
    for x in contexts(20, d):
        regression.observe(x, 0.7)
    theta, A = regression.theta.copy(), regression.A()
    regression.fade(0.1)
    regression.shift(0.25)
    theta[-1] += 0.25
    np.testing.assert_array_equal(regression.theta, theta)
    np.testing.assert_allclose(regression.A(), 0.1 * A, rtol=1e-7, atol=1e-10)
    assert regression.forgotten == pytest.approx(math.log(10.0))


@pytest.mark.parametrize("observed", [0, 3, TAILS, TAILS + 5])
@pytest.mark.parametrize("d", DIMENSIONS)
def test_packed_and_unpacked_it_goes_on_to_the_bit(d: int, observed: int) -> None:
    regression, other = started(d), started(d)
    X = contexts(observed + 20, d)
    for x in X[:observed]:
        regression.observe(x, 0.3)
    other.restore(regression.kept)
    for x in X[observed:]:
        assert other.observe(x, 0.6) == regression.observe(x, 0.6)
    np.testing.assert_array_equal(other.theta, regression.theta)
    np.testing.assert_array_equal(other.V(), regression.V())


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_look_leaves_nothing_of_its_context_behind(d: int) -> None:
    regression, [x, y] = started(d), contexts(2, d)
    before, shared, looked = regression.array.tobytes(), regression.shared, regression.look(x)
    regression.look(y)
    assert (regression.array.tobytes(), regression.shared) == (before, shared)
    assert regression.look(x) == looked


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_not_finite_changes_nothing(number: float) -> None:
    regression, x = started(3), np.array([0.5, -1.0, 1.0])
    regression.observe(x, 0.5)
    before = regression.kept.copy()
    for attempt in (
        lambda: regression.observe(x, number),
        lambda: regression.observe(np.array([math.nan, 0.0, 1.0]), 0.5),
        lambda: regression.revise(x, difference=number, discount=1.0),
    ):
        with pytest.raises(NonFiniteInput):
            attempt()
    np.testing.assert_array_equal(regression.kept.copy(), before)
