"""Compare a played scenario with random choice, fixed models, the best fixed mix and the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from commands.demo.demo_play import Matrix, Scenario

ALWAYS, BEST_MIX = "always ", "best fixed mix within the budget"
"""Beginning of a fixed choice's name, and the name of the best mix of them."""


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A way to choose, with its mean reward and its mean cost in US dollars per request.

    Attributes:
        mix: of a fixed mix, each fixed choice and its share of the requests.
    """

    name: str
    reward: float
    cost_usd: float
    mix: tuple[tuple[str, float], ...] = ()


def yardsticks(scenario: Scenario) -> list[Yardstick]:
    """Return all yardsticks, on exactly the requests of the scenario."""
    fixed = list(_fixed(scenario))
    mix = [] if scenario.budget_usd is None else [best_mix(fixed, scenario.budget_usd)]
    return [_random(scenario), *fixed, *[found for found in mix if found], _oracle(scenario)]


def best_mix(fixed: list[Yardstick], budget_usd: float) -> Yardstick | None:
    """Return the best random mix of models whose mean cost is within the budget; None if all models
    are dearer.

    With one constraint the optimum mixes at most two models.
    """
    found = [replace(one, mix=((one.name, 1.0),)) for one in fixed if one.cost_usd <= budget_usd]
    for one, other in combinations(fixed, 2):
        cheap, dear = sorted((one, other), key=lambda model: model.cost_usd)
        if cheap.cost_usd < budget_usd < dear.cost_usd:
            share = (budget_usd - cheap.cost_usd) / (dear.cost_usd - cheap.cost_usd)
            mixed = cheap.reward + share * (dear.reward - cheap.reward)
            shares = ((cheap.name, 1.0 - share), (dear.name, share))
            found.append(Yardstick("", mixed, budget_usd, shares))
    if not found:
        return None
    best = max(found, key=lambda mix: mix.reward)
    return replace(best, name=BEST_MIX)


def _fixed(scenario: Scenario) -> Iterator[Yardstick]:
    for k, model in enumerate(scenario.models):
        # A fixed choice of a model that was not always there could not have been made.
        if scenario.available[:, k].all():
            yield Yardstick(
                f"{ALWAYS}{model}",
                float(scenario.rewards[:, k].mean()),
                float(scenario.costs[:, k].mean()),
            )


def _random(scenario: Scenario) -> Yardstick:
    # Uniformly among the models that were available at that request.
    weights: Matrix = scenario.available / scenario.available.sum(axis=1, keepdims=True)
    reward, cost = (
        (weights * values).sum(axis=1).mean() for values in (scenario.rewards, scenario.costs)
    )
    return Yardstick("random", float(reward), float(cost))


def _oracle(scenario: Scenario) -> Yardstick:
    """Choose the best answer to each prompt, whatever it costs; of two equally good answers the
    cheaper one.
    """
    rewards = np.where(scenario.available, scenario.rewards, -np.inf)
    costs = np.where(rewards == rewards.max(axis=1, keepdims=True), scenario.costs, np.inf)
    return Yardstick(
        "oracle for each prompt, any cost",
        float(rewards.max(axis=1).mean()),
        float(costs.min(axis=1).mean()),
    )
