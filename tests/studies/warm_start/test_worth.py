"""What priors are worth: measured on prompts that were held out, and never better than it is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from studies.warm_start.gains import half_widths
from studies.warm_start.lines import held_out
from studies.warm_start.observations import Observations
from studies.warm_start.worth import as_json, sentence, worth_of
from studies.warm_start.worth_page import render
from tests.drawing.test_drawing import data_of

N, D = 600, 6
COSTS = np.array([1e-5, 1e-3])


def observed(slope: float, noise: float = 0.05, seed: int = 0) -> Observations:
    """Return two models of which each is the better one on half of the prompts, if there is a
    slope.
    """
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(N, D - 1)), np.ones(N)])
    rewards = np.clip(
        np.column_stack([0.7 - slope * X[:, 0], 0.75 + slope * X[:, 0]])
        + noise * rng.normal(size=(N, 2)),
        0,
        1,
    )
    costs = COSTS * rng.lognormal(0.0, 0.2, (N, 2))
    return Observations(("cheap", "dear"), X, rewards, costs, [f"prompt {n}" for n in range(N)])


def test_routing_gains_where_models_differ_by_prompt() -> None:
    worth = worth_of(observed(0.1))
    most = worth.most
    assert most is not None and most.gain - most.off > 0.03
    assert worth.told_apart and worth.complete and "Routing gains most" in sentence(worth)
    pair = worth.pairs[0]
    assert (pair.model, pair.other) == ("dear", "cheap") and 0.3 < pair.other_better < 0.5
    assert all(bought.routed_cost_usd <= 1.001 * bought.budget_usd for bought in worth.frontier)
    dear = worth.models[1]
    assert (
        dear.reward_error is not None
        and dear.reward_spread is not None
        and dear.reward_error < 0.6 * dear.reward_spread
    )


def test_where_nothing_differs_by_prompt_nothing_is_promised() -> None:
    worth = worth_of(observed(0.0, noise=0.3))
    assert worth.told_apart is False
    assert "do not tell the models apart" in sentence(worth)
    for one in worth.models:
        assert one.reward_error is not None and one.reward_error == pytest.approx(
            one.reward_spread, rel=0.03
        )


def test_what_was_not_called_is_predicted_and_said_to_be() -> None:
    full = observed(0.1)
    called = np.random.default_rng(1).random((N, 2)) < 0.5
    partly = replace(
        full,
        rewards=np.where(called, full.rewards, np.nan),
        costs=np.where(called, full.costs, np.nan),
    )
    worth = worth_of(partly)
    assert not worth.complete and "predicted" in sentence(worth)
    assert worth.most is not None and worth.most.gain > worth.most.off
    # No better than what routing does earn where everything is known, within the doubt.
    known = next(b for b in worth_of(full).frontier if b.budget_usd > 0.99 * worth.most.budget_usd)
    assert abs(worth.most.gain - known.gain) < worth.most.off + known.off
    predicted = held_out(partly.contexts, partly.rewards)
    assert np.abs(predicted - held_out(full.contexts, full.rewards)).mean() < 0.02


@pytest.mark.parametrize("missing", ["rewards", "costs"])
def test_without_rewards_or_costs_there_is_no_frontier(missing: str) -> None:
    unknown: dict[str, Any] = {missing: np.full((N, 2), np.nan)}
    worth = worth_of(replace(observed(0.1), **unknown))
    assert worth.frontier == () and "needs rewards and costs" in sentence(worth)


def noise(number: int, *, models: int, prompts: int, missing: float) -> Observations:
    """Draw rewards and costs that have nothing to do with the prompt; with `missing` 1.0 a prompt
    has the outcome of one model.
    """
    rng = np.random.default_rng(number)
    shape = (prompts, models)
    X = np.column_stack([rng.normal(size=(prompts, 11)), np.ones(prompts)])
    rewards = np.clip(rng.uniform(0.4, 0.9, models) + 0.25 * rng.normal(size=shape), 0, 1)
    costs = np.geomspace(1e-5, 1e-3, models) * rng.lognormal(0.0, 0.4, shape)
    known = rng.random(shape) >= missing
    known[np.arange(prompts), rng.integers(models, size=prompts)] = True
    nan = np.where(known, 1.0, np.nan)
    names = [f"prompt {n}" for n in range(prompts)]
    return Observations(tuple("abcde"[:models]), X, rewards * nan, costs * nan, names)


@pytest.mark.parametrize(
    ("models", "prompts", "missing"), [(2, 40, 0.0), (3, 100, 0.7), (4, 100, 1.0)]
)
def test_noise_is_promised_a_gain_as_rarely_as_the_interval_says(
    models: int, prompts: int, missing: float
) -> None:
    drawn = [
        worth_of(noise(number, models=models, prompts=prompts, missing=missing))
        for number in range(30)
    ]
    # 95 % hold: of 30 sets at most 5 may promise something, with a probability of 0.996.
    assert sum(worth.told_apart is True for worth in drawn) <= 5
    # What looks best is not: the gains that it would have promised without its interval.
    assert sum((worth.most is not None and worth.most.gain > 0.002) for worth in drawn) > 5


@pytest.mark.parametrize(("prompts", "missing"), [(150, 0.0), (600, 0.5), (1500, 1.0)])
def test_a_clear_signal_is_found(prompts: int, missing: float) -> None:
    for number in range(5):
        world = noise(number, models=2, prompts=prompts, missing=missing)
        slope = np.outer(world.contexts[:, 0], [-0.25, 0.25])
        told = replace(world, rewards=np.clip(world.rewards + slope, 0, 1))
        worth = worth_of(told)
        assert worth.told_apart and worth.most is not None, number
        assert worth.most.gain > worth.most.off > 0.0


@pytest.mark.parametrize("rows", [1, 2, 3, 11])
def test_few_rows_promise_nothing(rows: int) -> None:
    worth = worth_of(noise(3, models=2, prompts=rows, missing=0.0))
    assert worth.told_apart is False
    assert all(np.isfinite((bought.gain, bought.off)).all() for bought in worth.frontier)


def test_constant_scores_promise_nothing() -> None:
    world = noise(4, models=3, prompts=200, missing=0.0)
    for scores in ([0.5, 0.5, 0.5], [0.2, 0.5, 0.9]):
        worth = worth_of(replace(world, rewards=np.tile(scores, (200, 1))))
        assert worth.told_apart is False, worth.most


def test_one_model_leaves_nothing_to_route() -> None:
    worth = worth_of(noise(5, models=1, prompts=100, missing=0.0))
    assert worth.told_apart is None and "the only model" in sentence(worth)


def test_what_is_within_chance_is_not_listed_as_a_difference() -> None:
    worth = worth_of(noise(6, models=3, prompts=300, missing=0.0))
    data = data_of(render(worth))
    assert "Which models differ on which prompts" not in [one["title"] for one in data["tables"]]
    gains = data["tables"][0]
    assert all(
        "±" in row[gains["heads"].index({"label": "Gain", "number": True})] for row in gains["rows"]
    )


def test_intervals_of_all_gains_hold_together() -> None:
    rng = np.random.default_rng(0)
    mixing = 0.05 * rng.normal(size=(8, 8))
    held = 0
    for _ in range(200):
        differences = rng.normal(size=(50, 8)) @ mixing
        held += bool((np.abs(differences.mean(0)) <= half_widths(differences)).all())
    assert 180 <= held <= 199  # of 200, 190 are expected


def test_degenerate_prompts_are_no_fault() -> None:
    few = observed(0.1)
    alike = replace(few, contexts=np.tile([0.0] * (D - 1) + [1.0], (N, 1)))
    one = Observations(
        ("only",), few.contexts[:3], few.rewards[:3, :1], np.zeros((3, 1)), ["a", "b", "c"]
    )
    for found in (worth_of(alike), worth_of(one)):
        assert all(np.isfinite(bought.routed) for bought in found.frontier)
        as_json(found)


def test_its_page_draws_what_was_found_and_says_it_first() -> None:
    worth = worth_of(observed(0.1))
    text = render(worth)
    assert sentence(worth) in re.sub("</?b>", "", text)
    data = data_of(text)
    drawn = [(one["cost_usd"], one["quality"]) for one in data["pareto"]["line"]]
    assert drawn == [(one.budget_usd, one.routed) for one in worth.frontier]
    assert [one["name"] for one in data["pareto"]["models"]] == ["cheap", "dear"]
    assert len(data["tables"]) == 3


def test_without_a_frontier_there_is_none_on_the_page() -> None:
    data = data_of(render(worth_of(replace(observed(0.1), costs=np.full((N, 2), np.nan)))))
    assert data["pareto"] is None and [one["title"] for one in data["tables"]]
