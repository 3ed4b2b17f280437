"""Measure the worth of priors: errors on held-out prompts, differences between models, and what a
budget buys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ground.files.array_folder import Array
from studies.warm_start.frontier import Bought, gain_text, gains_of
from studies.warm_start.observations import Observations

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

EXAMPLES = 1
"""Number of prompts that are shown as examples for a pair of models."""
NEVER_BEST = -1e9  # of a model without rewards


@dataclass(frozen=True, slots=True)
class ModelWorth:
    """The accuracy with which one model is predicted on held-out prompts, and the share of them on
    which it is expected to be the best.

    Attributes:
        reward_error, reward_spread: root mean square error of the prediction, and of the model's
            mean alone; None: no rewards.
        cost_error, cost_spread: the same of the logarithm of bills above zero, as factors; None: no
            bills.
        best_on: share of the prompts on which no model is expected to earn more.
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
class Worth:
    """The worth of priors.

    Attributes:
        frontier: empty where rewards or costs are missing.
        prompts: how many were predicted.
        told_apart: whether choosing by prompt earns more than chance explains, with or without a
            budget; None: fewer than two models have rewards.
        complete: every outcome is known, so that none had to be predicted.
    """

    models: tuple[ModelWorth, ...]
    pairs: tuple[Pair, ...]
    frontier: tuple[Bought, ...]
    prompts: int
    told_apart: bool | None
    complete: bool

    @property
    def most(self) -> Bought | None:
        """Return the budget at which routing gains most over the best fixed mix, among those with a
        gain beyond chance if there are any.
        """
        sure = [bought for bought in self.frontier if bought.gain > bought.off]
        return max(sure or self.frontier, key=lambda bought: bought.gain, default=None)


def worth_of(observed: Observations) -> Worth:
    """Return the worth of predictions, each prompt being predicted from other prompts."""
    scores, logs = observed.held_out(observed.rewards), observed.log_costs
    models = _models(observed, scores, logs, observed.held_out(logs))
    rewarded = [k for k in range(len(observed.models)) if np.isfinite(observed.rewards[:, k]).any()]
    pairs = sorted(
        (_pair(observed, scores, i, j) for i, j in combinations(rewarded, 2)),
        key=lambda pair: -pair.other_better,
    )
    frontier, told_apart = gains_of(observed, scores, rewarded)
    return Worth(
        tuple(models), tuple(pairs), frontier, len(observed), told_apart, observed.complete
    )


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


def sentence(worth: Worth) -> str:
    """Return a sentence on what a budget buys."""
    most = worth.most
    if len(worth.models) == 1:
        return f"There is nothing to route: {worth.models[0].model} is the only model."
    if worth.told_apart is False:
        largest = "" if most is None else f" At most it is {gain_text(most)}."
        return (
            f"Your prompts do not tell the models apart: over {worth.prompts:,} prompts routing "
            f"gains nothing beyond chance over the best fixed mix of models.{largest}"
        )
    if most is None:
        return "What a budget buys needs rewards and costs of every model."
    guessed = "" if worth.complete else " (what models that were not called would do is predicted)"
    return (
        f"Routing gains most at ${most.budget_usd:.2g} per request: {most.routed:.3f}, "
        f"where the best fixed mix of models earns {most.mix:.3f}: a gain of "
        f"{gain_text(most)}{guessed}."
    )


def as_json(worth: Worth) -> dict[str, Sequence[object] | bool]:
    """Return the result of the study as JSON's types."""

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
