"""What priors are worth: how well they predict prompts they have not seen, who differs on which,
and what a budget buys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from streams.files.array_folder import Array
from streams.warm_start.lines import best_fixed_mix, held_out, within_budget
from streams.warm_start.observations import Observations

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

POINTS = 15
"""Budgets of the curve, between the cheapest and the dearest model."""
LEAST_SHARE = 0.05  # of a model's mean cost that any prompt is expected to cost
EXAMPLES = 1
"""Prompts that a pair of models is explained by."""
NEVER_BEST = -1e9  # of a model without rewards


@dataclass(frozen=True, slots=True)
class ModelWorth:
    """How well one model is predicted on prompts that were held out, and where it is expected to be
    the best.

    Attributes:
        reward_error, reward_spread: root mean square error of the prediction, and of the model's
            mean alone; None: no rewards.
        cost_error, cost_spread: the same of the logarithm of bills above zero, as factors; None: no
            bills.
        best_on: share of the prompts on which nobody is expected to earn more.
        examples: the prompts on which it is expected to lead by most.
    """

    model: str
    mean_reward: float | None
    reward_error: float | None
    reward_spread: float | None
    mean_cost_usd: float | None
    cost_error: float | None
    cost_spread: float | None
    best_on: float
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models: the first earns more on average; `spread` is the deviation of the expected
    difference from prompt to prompt.

    `other_better` is the share of prompts on which the second is expected to earn more.
    """

    model: str
    other: str
    difference: float
    spread: float
    other_better: float


@dataclass(frozen=True, slots=True)
class Bought:
    """What a budget in dollars per request buys: the best fixed mix of models, and routing by these
    priors.
    """

    budget_usd: float
    mix: float
    routed: float
    routed_cost_usd: float


@dataclass(frozen=True, slots=True)
class Worth:
    """All of it. `frontier` is empty where rewards or costs are missing; `complete`: nothing in it
    is a prediction of itself.
    """

    models: tuple[ModelWorth, ...]
    pairs: tuple[Pair, ...]
    frontier: tuple[Bought, ...]
    complete: bool

    @property
    def most(self) -> Bought | None:
        """Return where routing gains most over the best fixed mix."""
        return max(self.frontier, key=lambda bought: bought.routed - bought.mix, default=None)


def worth_of(observed: Observations) -> Worth:
    """Predict every prompt from others, and say what that is worth."""
    scores = held_out(observed.contexts, observed.rewards)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Bills are about lognormal: an error of logarithms is a factor, alike for cheap and dear
        # models.
        logs = np.where(observed.costs > 0.0, np.log(observed.costs), np.nan)
    models = _models(observed, scores, logs, held_out(observed.contexts, logs))
    rewarded = [k for k in range(len(observed.models)) if np.isfinite(observed.rewards[:, k]).any()]
    pairs = sorted(
        (_pair(observed, scores, i, j) for i, j in combinations(rewarded, 2)),
        key=lambda pair: -pair.other_better,
    )
    return Worth(tuple(models), tuple(pairs), tuple(_frontier(observed, scores)), observed.complete)


def _models(
    observed: Observations, scores: Array, logs: Array, expected: Array
) -> list[ModelWorth]:
    found = []
    known = np.isfinite(observed.rewards).any(0)
    ranked = np.where(known, scores, NEVER_BEST)
    for k, model in enumerate(observed.models):
        rewards, costs = observed.rewards[:, k], observed.costs[:, k]
        others = np.delete(ranked, k, axis=1)
        lead = ranked[:, k] - (others.max(1) if others.shape[1] else 0.0)
        leading = [int(i) for i in np.argsort(-lead)[:EXAMPLES] if lead[i] > 0.0]
        reward_error, reward_spread = _errors(rewards, scores[:, k])
        cost_error, cost_spread = _errors(logs[:, k], expected[:, k])
        found.append(
            ModelWorth(
                model,
                _mean(rewards),
                reward_error,
                reward_spread,
                _mean(costs),
                None if cost_error is None else math.exp(cost_error),
                None if cost_spread is None else math.exp(cost_spread),
                float((lead > 0.0).mean()),
                tuple(observed.names[i] for i in leading),
            )
        )
    return found


def _errors(values: Array, predicted: Array) -> tuple[float | None, float | None]:
    some = np.isfinite(values)
    if not some.any():
        return None, None
    return float(np.sqrt(((values - predicted)[some] ** 2).mean())), float(values[some].std())


def _mean(values: Array) -> float | None:
    some = values[np.isfinite(values)]
    return float(some.mean()) if len(some) else None


def _pair(observed: Observations, scores: Array, i: int, j: int) -> Pair:
    if scores[:, i].mean() < scores[:, j].mean():
        i, j = j, i
    lead = scores[:, i] - scores[:, j]
    return Pair(
        observed.models[i],
        observed.models[j],
        float(lead.mean()),
        float(lead.std()),
        float((lead < 0.0).mean()),
    )


def _frontier(observed: Observations, scores: Array) -> list[Bought]:
    """Return what budgets from the cheapest model's cost to the dearest one's buy, where every
    model has rewards and bills.
    """
    if (
        not (
            np.isfinite(observed.rewards).any(0).all() and np.isfinite(observed.costs).any(0).all()
        )
        or len(observed.models) < 2
    ):
        return []
    scale = np.maximum(np.nanmean(observed.costs, axis=0), 1e-12)
    # In units of each model's mean, so that one ridge suits models of any price; never near 0,
    # where a line may go below it.
    expected = np.maximum(held_out(observed.contexts, observed.costs / scale), LEAST_SHARE) * scale
    rewards = np.where(np.isfinite(observed.rewards), observed.rewards, scores)
    costs = np.where(np.isfinite(observed.costs), observed.costs, expected)
    means = costs.mean(0)
    if means.max() <= 0.0:
        return []
    # A free model would begin the curve at 0, which has no place on a logarithmic axis.
    low = max(float(means.min()), 1e-4 * float(means.max()))
    at = np.arange(len(observed))
    found = []
    for budget in np.geomspace(low, float(means.max()), POINTS).tolist():
        won = within_budget(scores, expected, costs, budget)
        mix = best_fixed_mix(rewards, costs, budget)[1]
        found.append(
            Bought(budget, mix, float(rewards[at, won].mean()), float(costs[at, won].mean()))
        )
    return found


def sentence(worth: Worth) -> str:
    """Return in a sentence what a budget buys."""
    most = worth.most
    if most is None:
        return "What a budget buys needs rewards and costs of every model."
    if most.routed - most.mix < 0.002:
        return (
            "At no budget is routing by these priors expected to earn more than the best fixed "
            "mix of models."
        )
    guessed = (
        ""
        if worth.complete
        else " (rewards and costs of models that were not called are predicted)"
    )
    return (
        f"Routing gains most at ${most.budget_usd:.2g} per request: {most.routed:.3f}, "
        f"where the best fixed mix of models earns {most.mix:.3f}{guessed}."
    )


def as_json(worth: Worth) -> dict[str, Sequence[object] | bool]:
    """Return it as it is written for programs."""

    def rows(values: Sequence[DataclassInstance]) -> list[dict[str, object]]:
        return [
            {field.name: getattr(value, field.name) for field in fields(value)} for value in values
        ]

    return {
        "models": rows(worth.models),
        "pairs": rows(worth.pairs),
        "frontier": rows(worth.frontier),
        "complete": worth.complete,
    }
