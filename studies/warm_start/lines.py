"""Predict held-out prompts by a linear model, and choose with it under a budget, beside the best
fixed mix.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ground.files.array_folder import Array
from router_state.kernel import Options

FOLDS = 5
"""Parts of the cross-validation that chooses a ridge."""
RIDGES = (1.0, 10.0, 100.0, 1e3, 1e4)
"""Ridges, added to the eigenvalues of XᵀX, of which cross-validation takes the best for each
outcome."""
FEW = 2 * FOLDS  # outcomes of which nothing but their mean is learned


def held_out(contexts: Array, outcomes: Array) -> Array:
    """Return linear predictions, shape (n, m), each from the four fifths of what is known that it
    is not in.

    The ridge is, for each outcome, the one with the least held-out error. Where an outcome is not
    known, it is predicted from all.

    Args:
        contexts: shape (n, d), last entry 1.0; it is not penalised.
        outcomes: shape (n, m); NaN: not known.
    """
    found = np.empty_like(outcomes)
    known = np.isfinite(outcomes)
    # Outcomes that are known of the same prompts are regressed together.
    alike: dict[bytes, list[int]] = {}
    for k in range(outcomes.shape[1]):
        alike.setdefault(known[:, k].tobytes(), []).append(k)
    for columns in map(np.array, alike.values()):
        rows = known[:, columns[0]]
        if rows.sum() <= FEW:
            found[:, columns] = (
                np.nanmean(outcomes[rows][:, columns], axis=0) if rows.any() else 0.0
            )
            continue
        inside = outcomes[np.ix_(rows, columns)]
        cross, ridges = _cross_fitted(contexts[rows], inside)
        found[np.ix_(rows, columns)] = cross
        if not rows.all():
            found[np.ix_(~rows, columns)] = _best(
                _regress(contexts[rows], inside, contexts[~rows]), ridges
            )
    return found


def _cross_fitted(contexts: Array, outcomes: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return held-out predictions (n, m) and which ridge predicts each outcome best, shape (m,)."""
    n, m = outcomes.shape
    # A fixed seed: the same file gives the same figures.
    fold = np.random.default_rng(0).permutation(n) % FOLDS
    found = np.empty((len(RIDGES), n, m))
    for held in range(FOLDS):
        asked = fold == held
        found[:, asked] = _regress(contexts[~asked], outcomes[~asked], contexts[asked])
    ridges = ((found - outcomes) ** 2).mean(1).argmin(0)
    return _best(found, ridges), ridges


def _best(found: Array, ridges: npt.NDArray[np.intp]) -> Array:
    chosen: Array = np.stack([found[j, :, k] for k, j in enumerate(ridges)], axis=1)
    return chosen


def _regress(contexts: Array, outcomes: Array, asked: Array) -> Array:
    """Return what every ridge, shape (R, len(asked), m), predicts for contexts, from others with
    their outcomes.
    """
    centre, mean = contexts[:, :-1].mean(0), outcomes.mean(0)
    X, Y = contexts[:, :-1] - centre, outcomes - mean
    # One decomposition for all ridges: XᵀX + λI has the same eigenvectors.
    values, vectors = np.linalg.eigh(X.T @ X)
    target, Z = vectors.T @ (X.T @ Y), (asked[:, :-1] - centre) @ vectors
    return np.stack(
        [mean + Z @ (target / (np.maximum(values, 0.0) + ridge)[:, None]) for ridge in RIDGES]
    )


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
    # Half the budget asks for a price that is surely too high: an upper end to bisect from.
    low, high = 0.0, 2.0 * (Options.of(scores, expected).price(target=budget / 2.0) or 1e6)
    # Sixty halvings leave less than the rounding of a float.
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if over(middle) else (low, middle)
    return choices(high)


def best_fixed_mix(rewards: Array, costs: Array, budget: float) -> tuple[float, float]:
    """Return cost ÷ budget and reward of the best mixture of models within the budget: what a coin
    can reach.

    Args:
        rewards, costs: shape (n, K); only their means matter.
    """
    shares = best_fixed_shares(rewards, costs, budget)
    return float(costs.mean(0) @ shares) / budget, float(rewards.mean(0) @ shares)


def best_fixed_shares(rewards: Array, costs: Array, budget: float) -> Array:
    """Return each model's share in the best mixture within the budget, shape (K,); the cheapest
    alone where none is within it. See `best_fixed_mix`.
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
