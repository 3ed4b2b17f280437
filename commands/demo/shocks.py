"""Change the world between the first and the last third of a play: prices move, a model fails, a
model joins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from commands.demo.demo_play import Scenario
from schemas import ModelDeclared, RouterDeclared

LLAMA, MISTRAL, GEMINI = range(3)
"""Positions of the benchmark's models."""
FAILED_QUALITY = 0.3
"""Mean reward of the model that fails."""


def price_cut(scenario: Scenario) -> Scenario:
    """Let the dearest model cost $0.10 per million tokens in the middle third of the play: a 56th
    of its price.
    """
    return _priced(scenario, GEMINI, 0.1 / 5.625, label="price cut")


def price_rise(scenario: Scenario) -> Scenario:
    """Let the middle model cost four times as much in the middle third of the play."""
    return _priced(scenario, MISTRAL, 4.0, label="price rise")


def model_failure(scenario: Scenario) -> Scenario:
    """Let the middle model's mean reward drop to 0.3 in the middle third of the play, without an
    announcement.
    """
    start, end = _middle(scenario)
    rewards = scenario.rewards.copy()
    # Shifted, not replaced: it stays better at the same prompts, as in a real regression.
    shift = FAILED_QUALITY - rewards[start:end, MISTRAL].mean()
    rewards[start:end, MISTRAL] = np.clip(rewards[start:end, MISTRAL] + shift, 0.0, 1.0)
    return replace(
        scenario,
        rewards=rewards,
        events=((start, f"{_name(scenario, MISTRAL)} fails"), (end, "it recovers")),
    )


def new_model(scenario: Scenario) -> Scenario:
    """Start without the middle model, which joins without a prior at a third of the play."""
    start, _ = _middle(scenario)
    name = scenario.models[MISTRAL]
    full = scenario.declarations[0][1]
    # Without its prior: a model of which much is known would be a smaller shock.
    newcomer = full.models[name].model_copy(update={"prior": None, "cost_prior": None})
    joined = full.model_copy(update={"models": {**full.models, name: newcomer}})
    before = full.model_copy(
        update={"models": {key: model for key, model in full.models.items() if key != name}}
    )
    available = scenario.available.copy()
    available[:start, MISTRAL] = False
    return replace(
        scenario,
        available=available,
        declarations=((0, before), (start, joined)),
        events=((start, f"{_name(scenario, MISTRAL)} joins"),),
    )


SHOCKS: Mapping[str, Callable[[Scenario], Scenario]] = {
    "none": lambda scenario: scenario,
    "price-cut": price_cut,
    "price-rise": price_rise,
    "model-failure": model_failure,
    "new-model": new_model,
}
"""Changes of the world, by the name that `pbstream demo --shock` takes."""


def _middle(scenario: Scenario) -> tuple[int, int]:
    return len(scenario) // 3, 2 * len(scenario) // 3


def _name(scenario: Scenario, k: int) -> str:
    return scenario.models[k].rpartition("/")[2]


def _priced(scenario: Scenario, k: int, factor: float, *, label: str) -> Scenario:
    """Multiply one model's prices and bills by `factor` in the middle third, announced by a
    declaration each way.
    """
    start, end = _middle(scenario)
    costs = scenario.costs.copy()
    costs[start:end, k] *= factor
    before = scenario.declarations[0][1]
    after = _with_prices(before, scenario.models[k], factor)
    name = _name(scenario, k)
    return replace(
        scenario,
        costs=costs,
        declarations=((0, before), (start, after), (end, before)),
        events=((start, f"{name}: {label}"), (end, "taken back")),
    )


def _with_prices(declared: RouterDeclared, name: str, factor: float) -> RouterDeclared:
    model = declared.models[name]
    prices = {
        "input_price_per_m": model.input_price_per_m * factor,
        "output_price_per_m": model.output_price_per_m * factor,
    }
    repriced: ModelDeclared = model.model_copy(update=prices)
    return declared.model_copy(update={"models": {**declared.models, name: repriced}})
