"""The reference library `paretobandit`, run as the paper's scripts run it: route, cost on the log,
feedback.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper.outcome import Outcome
from router_state.config import Knobs, Price
from streams.priors.fitted_priors import Priors


class Reference:
    """The library's router over a benchmark's models; arguments as of `Router`, of the knobs those
    that the paper has.
    """

    def __init__(
        self,
        models: Sequence[str],
        prices: Sequence[Price],
        *,
        knobs: Knobs,
        priors: Priors | None,
        budget: float | None,
    ) -> None:
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.feature_service import FeatureService
        from pareto_bandit.router import BanditRouter
        from pareto_bandit.storage import EphemeralContextStore

        logging.getLogger("pareto_bandit").setLevel(logging.ERROR)
        self._row = {model: k for k, model in enumerate(models)}
        self._pacer = None if budget is None else BudgetPacer(budget)
        self._forced: list[str] = []
        self._dimensions = 26 if priors is None else priors.dimensions
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._router = BanditRouter.create(
                # An own list: the shipped one has speed profiles, which the paper's scripts leave
                # out.
                model_registry={
                    model: _entry(price) for model, price in zip(models, prices, strict=True)
                },
                feature_service=FeatureService.for_precomputed(self._dimensions),
                context_store=EphemeralContextStore(),
                priors="none" if priors is None else _written(priors, Path(folder)),
                prior_n_effective=knobs.n_eff,
                alpha=knobs.alpha,
                forgetting_factor=knobs.gamma,
                cost_penalty=knobs.lambda_c,
                bandit_seed=knobs.seed,
                budget_pacer=self._pacer,
            )

    def reprice(self, model: str, price: Price) -> None:
        """Change a list price."""
        self._router.update_model_pricing(model, **_entry(price))

    def penalise(self, lambda_c: float) -> None:
        """Set another fixed price penalty."""
        self._router.cost_penalty = lambda_c

    def join(self, model: str, price: Price, *, pulls: int, booked: Price | None = None) -> None:
        """Register a model; `booked`: first by its blended price, then repriced, as the paper's
        script does with a dear one.

        The library's ceiling then goes by the input price alone (`_resolve_registry_costs` reads
        `cost_per_1m_tokens` first), its penalty by both prices.
        """
        self._row[model] = len(self._row)
        if booked is None:
            self._router.register_model(model, **_entry(price))
        else:
            self._router.register_model(
                model, cost_usd=price.input_price_per_m, blended_cost_per_m=price.per_1k * 1000.0
            )
            self._router.update_model_pricing(model, **_entry(price))
        self._forced = [model] * pulls

    @property
    def blended(self) -> dict[str, float]:
        """The list prices that the library's ceiling goes by: dollars per million tokens."""
        return {
            model: float(entry["blended_cost_per_m"])
            for model, entry in self._router.registry.items()
        }

    def run(
        self, contexts: np.ndarray, rewards: np.ndarray, costs: np.ndarray, order: Iterable[int]
    ) -> Outcome:
        """Route the rows in this order; rewards and costs have shape (n, K)."""
        router, rows = self._router, list(order)
        arms, earned, paid, lambdas = (
            np.zeros(len(rows), dtype=t) for t in (int, float, float, float)
        )
        for at, i in enumerate(rows):
            lambdas[at] = 0.0 if self._pacer is None else self._pacer.lambda_t
            if self._forced:
                model, log = self._forced.pop(), None
            else:
                model, log = router.route(contexts[i])
            k = self._row[model]
            reward, cost = float(rewards[i, k]), float(costs[i, k])
            self._learn(model, log, contexts[i], reward=reward, cost=cost)
            arms[at], earned[at], paid[at] = k, reward, cost
        return Outcome(arms, earned, paid, lambdas)

    def _learn(self, model: str, log: Any, x: np.ndarray, *, reward: float, cost: float) -> None:
        if log is not None:
            log.cost_usd = cost
            self._router.process_feedback(log.request_id, reward=reward)
            return
        self._router.update(model, x, reward, advance_time=True)
        if self._pacer is not None:
            self._pacer.observe(cost)


def _entry(price: Price) -> dict[str, float]:
    return {
        "input_cost_per_m": price.input_price_per_m,
        "output_cost_per_m": price.output_price_per_m,
    }


def _written(priors: Priors, folder: Path) -> str:
    """Write priors as the library reads them and return the file's name."""
    import joblib

    path = folder / "priors.joblib"
    A, b = (
        {model: part[k] for k, model in enumerate(priors.models)} for part in (priors.A, priors.b)
    )
    joblib.dump({"A": A, "b": b}, path)
    return str(path)
