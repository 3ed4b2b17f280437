"""The predictive distribution of a call's cost, against draws of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Price
from router_state.kernel import Predictive
from tests.router_state.core_reference import Array

DRAWS = 400_000
ONES = [
    Predictive(1e-3, 0.0, 0.0, 0.3, 1.0),
    Predictive(1e-3, 0.2, 0.1, 0.3, 0.7),
    Predictive(2.0, 0.05, 0.0, 0.0, 0.1),
    Predictive(1e-6, 0.5, 0.3, 0.2, 1.0),
]


def calls(one: Predictive) -> Array:
    """Draw what single calls cost: nothing, or a lognormal whose level is not known."""
    rng = np.random.default_rng(0)
    variance = one.level + one.noise
    paid = one.mean / one.paid * np.exp(math.sqrt(variance) * rng.normal(size=DRAWS) - variance / 2)
    drawn: Array = paid * (rng.random(DRAWS) < one.paid)
    return drawn


def means(one: Predictive) -> Array:
    """Draw what calls cost on average."""
    z = np.random.default_rng(1).normal(size=DRAWS)
    drawn: Array = one.mean * np.exp(math.sqrt(one.level + one.calibration) * z - one.level / 2)
    return drawn


@pytest.mark.parametrize("one", ONES)
def test_mean_and_deviation_are_those_of_a_call(one: Predictive) -> None:
    drawn = calls(one)
    assert drawn.mean() == pytest.approx(one.mean, rel=0.02)
    assert drawn.std() == pytest.approx(one.deviation, rel=0.04)


@pytest.mark.parametrize("share", [0.2, 0.7, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("one", ONES)
def test_the_chance_below_is_how_often_the_mean_is_below(one: Predictive, share: float) -> None:
    if one.level + one.calibration == 0.0:
        assert one.chance_below(share * one.mean) == float(share > 1.0)
        return
    drawn = means(one) < share * one.mean
    assert one.chance_below(share * one.mean) == pytest.approx(drawn.mean(), abs=0.005)


@pytest.mark.parametrize("bills", [0, 1, 10])
def test_the_mean_is_below_what_is_at_risk_in_at_least_nine_of_ten_cases(bills: int) -> None:
    arms = Arms(2, Journal())
    arms.add("m", price=Price(1.0, 1.0), A=np.eye(2), b=np.zeros(2), now_t=0, pulls=0)
    costs = arms["m"].costs
    for _ in range(bills):
        costs.observe(1.0, np.array([0.0, 1.0]), known=0.0, now=0.0)
    one = costs.predictive(1e-3)._replace(calibration=0.0)
    assert (means(one) <= one.mean + costs.beyond(one.mean)).mean() >= 0.898


@given(
    st.floats(0.0, 1e3),
    st.floats(0.0, 2.0),
    st.floats(0.0, 100.0),
    st.floats(1e-6, 10.0),
    st.floats(1e-6, 1.0),
    st.floats(0.0, 1e6),
)
def test_whatever_is_asked_the_answer_is_a_number(
    mean: float, level: float, calibration: float, noise: float, paid: float, usd: float
) -> None:
    one = Predictive(mean, level, calibration, noise, paid)
    assert 0.0 <= one.deviation < math.inf
    assert 0.0 <= one.chance_below(usd) <= one.chance_below(2.0 * usd) <= 1.0


def test_a_free_model_costs_less_than_anything() -> None:
    free = Predictive(0.0, 0.0, 0.0, 0.3, 1.0)
    assert free.deviation == 0.0
    assert (free.chance_below(1e-9), free.chance_below(0.0)) == (1.0, 0.0)


@pytest.mark.parametrize("paid", [1.0, 0.7])
def test_after_many_bills_it_is_the_distribution_that_they_are_of(paid: float) -> None:
    arms, rng, x = Arms(2, Journal()), np.random.default_rng(2), np.array([0.0, 1.0])
    arms.add("m", price=Price(1.0, 1.0), A=np.eye(2), b=np.zeros(2), now_t=0, pulls=0)
    costs = arms["m"].costs
    for _ in range(3000):
        ratio = 0.4 * float(np.exp(0.5 * rng.normal())) * (rng.random() < paid)
        costs.observe(ratio, x, known=0.0, now=0.0)
    expected = costs.paid * costs.predict(float(costs.regression.theta @ x)) * costs.list_price
    found = costs.predictive(expected)
    mean = 0.4e-3 * math.exp(0.125) * paid
    assert found.mean == pytest.approx(mean, rel=0.07)
    deviation = mean * math.sqrt(math.exp(0.25) / paid - 1.0)
    assert found.deviation == pytest.approx(deviation, rel=0.15)
    assert found.chance_below(0.85 * mean) < 0.05 and found.chance_below(1.2 * mean) > 0.95
