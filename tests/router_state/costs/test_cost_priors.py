"""What earlier bills say of a model's costs: believed from the first request on, outweighed by new
ones, refused if it is none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.played import Played
from router_state.config import CostPrior, Knobs, ModelConfig, Price, RouterConfig
from router_state.errors import InvalidConfig
from router_state.profiles import knobs_for

D = 4
PRICE = Price(1.0, 3.0)
LIVE: Knobs = knobs_for("live")


def bills(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return contexts and bills that rise with the first feature."""
    X = np.concatenate([rng.normal(size=(n, D - 1)), np.ones((n, 1))], axis=1)
    return X, 1e-3 * np.exp(0.3 * X[:, 0] + 0.1 * rng.normal(size=n))


def prior_of(X: np.ndarray, usd: np.ndarray, n_eff: float | None = None) -> CostPrior:
    some = usd > 0.0
    return CostPrior(X[some].T @ X[some], np.log(usd[some]) @ X[some], float(usd.mean()), n_eff)


def engine(prior: CostPrior | None, price: Price = PRICE) -> Played:
    models = {"known": ModelConfig(price, onboarding_pulls=0, cost_prior=prior)}
    return Played.start(RouterConfig(models, 1e-3, D, "live", LIVE))


def expected(of: Played, x: np.ndarray, request_id: str = "r") -> float:
    return of.decide(request_id, x, now=0.0).expected_cost_usd


def test_costs_by_prompt_are_expected_from_the_first_request_on() -> None:
    X, usd = bills(400, np.random.default_rng(0))
    told = engine(prior_of(X, usd))
    short, long = np.array([-1.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])
    assert expected(told, short) == pytest.approx(1e-3 * np.exp(-0.3), rel=0.15)
    assert expected(told, long, "s") == pytest.approx(1e-3 * np.exp(0.3), rel=0.15)


def test_bills_of_zero_lower_the_mean_and_nothing_else() -> None:
    X, usd = bills(400, np.random.default_rng(1))
    half = np.where(np.arange(400) % 2 == 0, usd, 0.0)
    centre = np.array([0.0, 0.0, 0.0, 1.0])
    assert expected(engine(prior_of(X, half)), centre) == pytest.approx(
        0.5 * expected(engine(prior_of(X, usd)), centre), rel=0.1
    )


def test_a_wrong_prior_is_outweighed_by_bills() -> None:
    X, usd = bills(400, np.random.default_rng(2))
    told = engine(prior_of(X, 5.0 * usd, n_eff=20.0))
    assert told.decide("first", X[0], now=0.0).expected_cost_usd > 2.0 * usd[0]
    told.settle("first", cost_usd=float(usd[0]))
    for i in range(1, 300):
        told.decide(str(i), X[i], now=float(i))
        told.settle(str(i), cost_usd=float(usd[i]))
    assert expected(told, np.array([0.0, 0.0, 0.0, 1.0]), "last") == pytest.approx(1e-3, rel=0.25)


def test_a_free_model_stays_free_whatever_a_prior_says() -> None:
    X, usd = bills(50, np.random.default_rng(3))
    assert expected(engine(prior_of(X, usd), Price(0.0, 0.0)), X[0]) == 0.0


def test_one_bill_is_enough_and_a_constant_context_no_fault() -> None:
    x = np.array([[0.0, 0.0, 0.0, 1.0]])
    assert expected(engine(prior_of(x, np.array([2e-3]))), x[0]) == pytest.approx(2e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"A": np.eye(D + 1)},
        {"b": np.zeros(D + 1)},
        {"A": np.zeros((D, D))},
        {"A": np.diag([1.0, 1.0, -5.0, 1.0])},
        {"A": np.eye(D) + np.eye(D, k=1)},
        {"A": np.full((D, D), np.nan)},
        {"mean_usd": -1.0},
        {"mean_usd": float("inf")},
    ],
)
def test_what_no_bills_can_say_is_refused(wrong: dict[str, object]) -> None:
    right = CostPrior(10.0 * np.eye(D), np.zeros(D), 1e-3)
    with pytest.raises(InvalidConfig):
        engine(replace(right, **wrong))  # type: ignore[arg-type]
