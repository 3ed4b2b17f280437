"""Routers that are trained beforehand and learn nothing while they serve: kNN, logistic regression,
and a matrix factorisation of prompts and models (as RouteLLM's, Ong et al. 2024).

Each predicts rewards and costs of all models; the choice is the largest reward less price·cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from benchmarks.arena import Array, Rows

STEPS, STEP = 400, 0.05  # of Adam; the loss has settled before
CLIP = 1e-6  # probabilities that a logistic regression may predict


class Predictor(Protocol):
    """Predict rewards and costs, each of shape (m, K), of m asked contexts, from n answered ones of
    which all K models' outcomes are known."""

    def __call__(
        self, contexts: Array, rewards: Array, costs: Array, asked: Array
    ) -> tuple[Array, Array]: ...


def neighbours(
    contexts: Array, rewards: Array, costs: Array, asked: Array, *, k: int
) -> tuple[Array, Array]:
    """See `Predictor`; means of the k nearest prompts."""
    from sklearn.neighbors import KNeighborsRegressor

    K = rewards.shape[1]
    near = KNeighborsRegressor(min(k, len(contexts))).fit(contexts, np.hstack([rewards, costs]))
    found = near.predict(asked)
    return found[:, :K], found[:, K:]


def logistic(
    contexts: Array, rewards: Array, costs: Array, asked: Array, *, C: float
) -> tuple[Array, Array]:
    """See `Predictor`; a logistic regression for each model, a reward between 0 and 1 being so much
    of either label, and a ridge regression of costs."""
    from sklearn.linear_model import LogisticRegression

    n, K = rewards.shape
    found = np.empty((len(asked), K))
    twice, label = np.vstack([contexts, contexts]), np.repeat([1, 0], n)
    for j in range(K):
        weights = np.concatenate([rewards[:, j], 1.0 - rewards[:, j]])
        if weights[:n].sum() < CLIP or weights[n:].sum() < CLIP:
            found[:, j] = rewards[:, j].mean()
            continue
        model = LogisticRegression(C=C, max_iter=500)
        found[:, j] = model.fit(twice, label, weights).predict_proba(asked)[:, 1]
    return found, _costs(contexts, costs, asked)


def factorised(
    contexts: Array, rewards: Array, costs: Array, asked: Array, *, rank: int
) -> tuple[Array, Array]:
    """See `Predictor`; P(reward) = σ(v_aᵀWx + c_a) with models' vectors v_a of length `rank`,
    fitted by Adam (Kingma and Ba 2015), and a ridge regression of costs."""
    (n, K), d = rewards.shape, contexts.shape[1]
    rng = np.random.default_rng(0)
    parts = [rng.normal(0.0, 0.1, (rank, d)), rng.normal(0.0, 0.1, (K, rank)), np.zeros(K)]
    first, second = [np.zeros_like(p) for p in parts], [np.zeros_like(p) for p in parts]
    for step in range(1, STEPS + 1):
        W, V, c = parts
        Z = contexts @ W.T
        error = (_sigmoid(Z @ V.T + c) - rewards) / n
        slopes = [(error @ V).T @ contexts + 1e-3 * W, error.T @ Z + 1e-3 * V, error.sum(0)]
        for j, slope in enumerate(slopes):
            first[j] = 0.9 * first[j] + 0.1 * slope
            second[j] = 0.999 * second[j] + 0.001 * slope**2
            scale = np.sqrt(second[j] / (1.0 - 0.999**step)) + 1e-8
            parts[j] = parts[j] - STEP * first[j] / (1.0 - 0.9**step) / scale
    W, V, c = parts
    found = _sigmoid(asked @ W.T @ V.T + c)
    return found, _costs(contexts, costs, asked)


def _costs(contexts: Array, costs: Array, asked: Array) -> Array:
    """Return predictions of a ridge regression of costs."""
    from sklearn.linear_model import Ridge

    found: Array = Ridge(1.0).fit(contexts, costs).predict(asked)
    return found


def _sigmoid(z: Array) -> Array:
    found: Array = 1.0 / (1.0 + np.exp(-np.clip(z, -40.0, 40.0)))
    return found


PREDICTORS: dict[str, dict[str, Predictor]] = {
    "kNN": {f"k = {k}": partial(neighbours, k=k) for k in (5, 20, 80)},
    "logistic": {f"C = {C:g}": partial(logistic, C=C) for C in (0.01, 0.1, 1.0)},
    "matrix factorisation": {f"rank {rank}": partial(factorised, rank=rank) for rank in (2, 8)},
}
"""Predictors by name and setting."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Predictions for asked prompts: rewards and costs, each of shape (m, K)."""

    rewards: Array
    costs: Array

    def choices(self, price: float) -> Rows:
        """Return the choices at a price of a dollar, shape (m,)."""
        chosen: Rows = (self.rewards - price * self.costs).argmax(1)
        return chosen
