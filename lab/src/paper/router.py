"""One request after the other through the shipping engine, bill and reward at once, as in the
paper's experiments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.played import Played
from paper.outcome import Outcome
from router_state.config import Knobs, ModelConfig, Price, Prior, RouterConfig
from router_state.kernel import log_price
from streams.priors.fitted_priors import Priors
from studies.simulate.policies import Finished


class Router:
    """A router over a benchmark's models.

    Args:
        priors: warm-up statistics in the order of the models, or None to start cold.
        budget: dollars per request, or None.
        pulls: forced pulls of each model where there are no priors.
    """

    def __init__(
        self,
        models: Sequence[str],
        prices: Sequence[Price],
        *,
        knobs: Knobs,
        priors: Priors | None,
        budget: float | None,
        pulls: int = 0,
    ) -> None:
        self._row = {model: k for k, model in enumerate(models)}
        self._made = 0
        self._models = {
            model: ModelConfig(
                price, None if priors is None else Prior(A=priors.A[k], b=priors.b[k]), pulls
            )
            for k, (model, price) in enumerate(zip(models, prices, strict=True))
        }
        self._config = RouterConfig(self._models, budget, profile="paper", knobs=knobs)
        self._records = Finished(256)
        self._engine = Played.start(self._config, self._records)

    def reprice(self, model: str, price: Price) -> None:
        """Declare another list price."""
        self._models = {**self._models, model: replace(self._models[model], price=price)}
        self._configure()

    def penalise(self, lambda_c: float) -> None:
        """Declare another fixed price penalty."""
        self._config = replace(self._config, knobs=replace(self._config.knobs, lambda_c=lambda_c))
        self._configure()

    def join(self, model: str, price: Price, *, pulls: int, booked: Price | None = None) -> None:
        """Declare a model of which nothing is known.

        `booked`: the price that the ceiling goes by while the penalty goes by `price`, as the
        library has it after a repricing.
        """
        self._row[model] = len(self._row)
        self._models = {**self._models, model: ModelConfig(booked or price, None, pulls)}
        self._configure()
        if booked is not None:
            # No declaration can say this: the engine knows one list price.
            arms = self._engine.state.arms
            arms[model].log_price = log_price(price.per_1k)
            arms.derive()

    def _configure(self) -> None:
        self._config = replace(self._config, models=self._models, offset=self._config.offset + 1)
        self._engine.configure(self._config, now=float(self._made))

    def run(
        self, contexts: np.ndarray, rewards: np.ndarray, costs: np.ndarray, order: Iterable[int]
    ) -> Outcome:
        """Route the rows in this order; rewards and costs have shape (n, K)."""
        engine, rows = self._engine, list(order)
        arms, earned, paid, lambdas = (
            np.zeros(len(rows), dtype=t) for t in (int, float, float, float)
        )
        for at, i in enumerate(rows):
            self._made += 1
            request_id = str(self._made)
            record = engine.decide(request_id, contexts[i], now=float(self._made))
            k = self._row[record.model]
            reward, cost = float(rewards[i, k]), float(costs[i, k])
            engine.settle(request_id, cost_usd=cost)
            engine.learn(request_id, reward=reward)
            engine.take_alerts()
            self._records.trim(engine)
            arms[at], earned[at], paid[at], lambdas[at] = k, reward, cost, record.lambda_t
        return Outcome(arms, earned, paid, lambdas)
