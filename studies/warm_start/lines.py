"""Predict held-out prompts by ridge regression, and choose models under a budget."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ground.extras import sklearn
from ground.files.array_folder import Array
from router_state.kernel import Options

Rows = npt.NDArray[np.intp]
FOLDS = 5
"""Parts of a cross-validation."""
RIDGES = (1.0, 10.0, 100.0, 1e3, 1e4)
"""Ridges from which leave-one-out validation takes the best for each outcome. Contexts have
variance 1, so a ridge of 10 counts as 10 prompts."""
FEW = 2 * FOLDS
"""Number of outcomes up to which only their mean is learned."""


def held_out(contexts: Array | list[Array], outcomes: Array) -> Array:
    """Return linear predictions, shape (n, m). The predictions for a prompt come from a fit to four
    fifths of the prompts, which do not include it.

    Args:
        contexts: shape (n, d); the last entry, 1.0, has a coefficient without penalty. A list has
            one such array for each fold.
        outcomes: shape (n, m); NaN: not known.
    """
    by_fold = contexts if isinstance(contexts, list) else [contexts] * FOLDS
    if len(outcomes) <= FEW:
        return predict(by_fold[0], outcomes, by_fold[0])
    found = np.empty_like(outcomes)
    for X, (learned, asked) in zip(by_fold, folds(len(outcomes)), strict=True):
        found[asked] = predict(X[learned], outcomes[learned], X[asked])
    return found


def folds(count: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield the training and the held-out prompts of each fold; the same at every call."""
    kept = sklearn("model_selection").KFold(FOLDS, shuffle=True, random_state=0)
    yield from kept.split(np.empty(count))


def predict(contexts: Array, outcomes: Array, asked: Array) -> Array:
    """Return predictions by ridge regression, shape (len(asked), m).

    Args:
        contexts: contexts to learn from, shape (n, d), last entry 1.0.
        outcomes: their outcomes, shape (n, m); NaN: not known. Each of the m columns has a ridge of
            its own.
        asked: contexts to predict, shape (len(asked), d).
    """
    found = np.empty((len(asked), outcomes.shape[1]))
    known = np.isfinite(outcomes)
    # Outcomes that are known of the same prompts are regressed together.
    alike: dict[bytes, list[int]] = {}
    for k in range(outcomes.shape[1]):
        alike.setdefault(known[:, k].tobytes(), []).append(k)
    for columns in map(np.array, alike.values()):
        rows = known[:, columns[0]]
        inside = outcomes[np.ix_(rows, columns)]
        if len(inside) <= FEW:
            found[:, columns] = inside.mean(axis=0) if len(inside) else 0.0
            continue
        model = sklearn("linear_model").RidgeCV(alphas=RIDGES, alpha_per_target=True)
        model.fit(contexts[rows, :-1], inside)
        found[:, columns] = model.predict(asked[:, :-1]).reshape(len(asked), -1)
    return found


def within_budget(
    scores: Array, expected: Array, costs: Array, budget: float
) -> npt.NDArray[np.intp]:
    """Return the choices, shape (n,), of scores less expected costs, at the price of a dollar that
    meets the budget in hindsight.

    Args:
        scores, expected, costs: shape (n, K): rewards and costs as predicted, costs as billed.
    """
    rows = np.arange(len(scores))

    def choices(per_dollar: float) -> npt.NDArray[np.intp]:
        won: npt.NDArray[np.intp] = (scores - per_dollar * expected).argmax(1)
        return won

    def over(per_dollar: float) -> bool:
        return float(costs[rows, choices(per_dollar)].mean()) > budget

    if not over(0.0):
        return choices(0.0)
    # The price for half the budget is surely too high: an upper end for the bisection.
    low, high = 0.0, 2.0 * (Options.of(scores, expected).price(target=budget / 2.0) or 1e6)
    # Sixty halvings leave less than the rounding of a float.
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if over(middle) else (low, middle)
    return choices(high)


def best_fixed_mix(rewards: Array, costs: Array, budget: float) -> tuple[float, float]:
    """Return cost ÷ budget and reward of the best mixture of models within the budget. A mixture
    draws models at random, whatever the prompt.

    Args:
        rewards, costs: shape (n, K); only their means matter.
    """
    shares = best_fixed_shares(rewards, costs, budget)
    return float(costs.mean(0) @ shares) / budget, float(rewards.mean(0) @ shares)


def best_fixed_shares(rewards: Array, costs: Array, budget: float) -> Array:
    """Return each model's share in the best mixture within the budget, shape (K,); the cheapest
    model alone if every mixture is dearer. See `best_fixed_mix`.

    >>> best_fixed_shares(np.array([[0.6, 0.9]]), np.array([[0.001, 0.009]]), 0.003).tolist()
    [0.75, 0.25]
    """
    cost, reward = costs.mean(0).tolist(), rewards.mean(0).tolist()
    within = [k for k, usd in enumerate(cost) if usd <= budget]
    beyond = [k for k, usd in enumerate(cost) if usd > budget]
    shares = np.zeros(len(cost))
    if not within:
        shares[min(beyond, key=cost.__getitem__)] = 1.0
        return shares
    best = max(within, key=lambda k: (reward[k], -cost[k]))
    shares[best] = 1.0
    most = reward[best]
    for low in within:
        for high in beyond:
            # Of a linear programme with one constraint an optimum mixes two models at most.
            share = (budget - cost[low]) / (cost[high] - cost[low])
            value = reward[low] + share * (reward[high] - reward[low])
            if value > most:
                most = value
                shares[:] = 0.0
                shares[low], shares[high] = 1.0 - share, share
    return shares
