"""Two routers side by side: the reference library and the core's paper profile, fed the same
prompts, rewards and bills.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from benchmarks.data import load_benchmark, wheel_priors
from benchmarks.played import Played
from router_state.config import ModelConfig, Price, Prior, RouterConfig
from router_state.profiles import knobs_for
from router_state.state import invariants

TOLERANCE = 1e-9
MODELS = (
    "meta-llama/llama-3.1-8b-instruct",
    "mistralai/mistral-large-2512",
    "google/gemini-2.5-pro",
)
PRICES = {MODELS[0]: Price(0.1, 0.1), MODELS[1]: Price(0.5, 1.5), MODELS[2]: Price(1.25, 10.0)}


@dataclass(frozen=True, eq=False)
class Prompts:
    """Contexts (n, 26), rewards (n, 3) and costs in dollars (n, 3) of the benchmark's prompts,
    columns as in MODELS.
    """

    contexts: np.ndarray
    rewards: np.ndarray
    costs: np.ndarray

    def __len__(self) -> int:
        return len(self.contexts)


@pytest.fixture(scope="session")
def prompts() -> Prompts:
    """The whole benchmark: the 1,785 validation prompts, then the 1,824 of the test split."""
    splits = [load_benchmark(split, encoder="static") for split in ("val", "test")]
    assert all(split.models == MODELS for split in splits)
    return Prompts(
        *(
            np.concatenate([getattr(s, name) for s in splits])
            for name in ("contexts", "rewards", "costs")
        )
    )


@pytest.fixture(autouse=True)
def quiet_library() -> Iterator[None]:
    """Silence the library's log for the time of a test."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@dataclass
class Pair:
    """The library's router and an engine that must follow it to 1e-9.

    Attributes:
        decided: decisions so far; also the request id and the time of the next one.
        chosen, reasons: how often each model and each reason came up; tied: how often a draw had to
            decide.
    """

    library: Any
    engine: Played
    config: dict[str, Any]
    prompts: Prompts
    decided: int = 0
    tied: int = 0
    chosen: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)

    def decide(self, i: int, *, max_price_per_1k: float | None = None) -> tuple[str, str, str]:
        """Route prompt i on both sides, compare, and return the two request ids and the model."""
        x = self.prompts.contexts[i]
        wanted, log = self.library.route(x, max_cost=max_price_per_1k)
        request_id = str(self.decided)
        record = self.engine.decide(
            request_id, x, now=float(self.decided), max_price_per_1k=max_price_per_1k
        )
        assert record.model == wanted, (
            f"decision {self.decided}: {record.model}, the library {wanted}"
        )
        assert record.candidates is not None
        score = record.candidates.score(record.candidates.models.index(wanted))
        assert abs(score - log.predicted_utility) <= TOLERANCE
        if self.library.budget_pacer is not None:
            assert abs(record.lambda_t - log.pacer_lambda_t) <= TOLERANCE
        self.decided += 1
        self.tied += record.propensity < 1.0
        self.chosen[wanted] = self.chosen.get(wanted, 0) + 1
        self.reasons[record.reason] = self.reasons.get(record.reason, 0) + 1
        return log.request_id, request_id, wanted

    def feed_back(self, i: int, ids: tuple[str, str, str], *, cost_factor: float = 1.0) -> None:
        """Give both sides the bill and the reward of prompt i, decided under these ids."""
        theirs, ours, model = ids
        k = MODELS.index(model)
        cost_usd, reward = (
            float(self.prompts.costs[i, k]) * cost_factor,
            float(self.prompts.rewards[i, k]),
        )
        self.library.log_index[theirs].cost_usd = cost_usd
        self.library.process_feedback(theirs, reward)
        self.engine.settle(ours, cost_usd=cost_usd)
        self.engine.learn(ours, reward=reward)

    def play(self, order: Any, **restrictions: Any) -> None:
        """Decide prompt by prompt, the bill and the reward before the next one; then compare what
        was learned.
        """
        for i in order:
            self.feed_back(int(i), self.decide(int(i), **restrictions))
        self.compare()

    def declare(self, prices: Mapping[str, Price], **model: Any) -> None:
        """Declare the portfolio again on the engine's side, with these list prices."""
        known = self.engine.state.config.models
        models = {
            name: ModelConfig(price, known[name].prior if name in known else None, **model)
            for name, price in prices.items()
        }
        self.engine.configure(RouterConfig(models=models, **self.config), now=float(self.decided))

    def compare(self) -> None:
        """Compare θ, A, A⁻¹, b and λ_t, and check the engine's invariants."""
        bandit, arms, state = self.library.bandit, self.engine.state.arms, self.engine.state
        assert bandit.t == state.t
        for k, name in enumerate(arms.names):
            assert np.abs(arms[k].rewards.theta - bandit.theta[name]).max() <= TOLERANCE
            assert np.abs(arms[k].rewards.A_inv() - bandit.A_inv[name]).max() <= TOLERANCE
            assert (
                np.abs(arms[k].rewards.A() - bandit.A[name]).max()
                <= TOLERANCE * np.abs(bandit.A[name]).max()
            )
            assert (
                np.abs(arms[k].rewards.b() - bandit.b[name]).max()
                <= TOLERANCE * np.abs(bandit.b[name]).max()
            )
        if self.library.budget_pacer is not None:
            assert abs(state.lambda_t - self.library.budget_pacer.lambda_t) <= TOLERANCE
        invariants.check(state, self.engine.records)


@pytest.fixture
def pair(prompts: Prompts) -> Callable[..., Pair]:
    """Return a maker of pairs: budget, λ_c, γ, α, seed, models with prices, with the shipped priors
    or cold.
    """

    def make(
        *,
        budget: float | None = None,
        lambda_c: float = 0.0,
        gamma: float = 0.997,
        alpha: float = 0.01,
        seed: int = 0,
        prices: Mapping[str, Price] = PRICES,
        warm: bool = True,
    ) -> Pair:
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.router import BanditRouter

        # An own registry: the shipped one adds a bias to models by their speed profile, which the
        # paper does not.
        registry = {
            name: {
                "input_cost_per_m": price.input_price_per_m,
                "output_cost_per_m": price.output_price_per_m,
            }
            for name, price in prices.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library = BanditRouter.create(
                model_registry=registry,
                feature_service=FeatureService.for_precomputed(prompts.contexts.shape[1]),
                priors="warmup" if warm else "none",
                bandit_seed=seed,
                cost_penalty=lambda_c,
                forgetting_factor=gamma,
                alpha=alpha,
                budget_pacer=None if budget is None else BudgetPacer(budget),
            )
        shipped = wheel_priors() if warm else None
        models = {}
        for name, price in prices.items():
            k = MODELS.index(name)
            prior = None if shipped is None else Prior(A=shipped.A[k], b=shipped.b[k])
            models[name] = ModelConfig(price, prior, onboarding_pulls=0)
        knobs = knobs_for(
            "paper", {"lambda_c": lambda_c, "gamma": gamma, "alpha": alpha, "seed": seed}
        )
        config = {
            "budget_usd_per_request": budget,
            "dimensions": prompts.contexts.shape[1],
            "profile": "paper",
            "knobs": knobs,
        }
        return Pair(library, Played.start(RouterConfig(models=models, **config)), config, prompts)

    return make
