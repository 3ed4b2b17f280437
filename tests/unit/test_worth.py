"""What priors are worth: measured on prompts that were held out, and never better than it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streams.warm_start.lines import held_out
from streams.warm_start.observations import Observations
from streams.warm_start.worth import as_json, sentence, worth_of
from streams.warm_start.worth_page import render
from tests.unit.test_drawing import data_of

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
    assert most is not None and most.routed > most.mix + 0.04
    assert worth.complete and "Routing gains most" in sentence(worth)
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
    most = worth.most
    assert most is not None and most.routed - most.mix < 0.01
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
    assert worth.most is not None and worth.most.routed > worth.most.mix + 0.03
    predicted = held_out(partly.contexts, partly.rewards)
    assert np.abs(predicted - held_out(full.contexts, full.rewards)).mean() < 0.02


@pytest.mark.parametrize("missing", ["rewards", "costs"])
def test_without_rewards_or_costs_there_is_no_frontier(missing: str) -> None:
    worth = worth_of(replace(observed(0.1), **{missing: np.full((N, 2), np.nan)}))
    assert worth.frontier == () and "needs rewards and costs" in sentence(worth)


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
    assert sentence(worth) in text
    data = data_of(text)
    drawn = [(one["cost_usd_per_request"], one["reward"]) for one in data["frontier"]["points"]]
    assert drawn == [(one.budget_usd, one.routed) for one in worth.frontier]
    assert [one["name"] for one in data["frontier"]["others"]] == ["cheap", "dear"]
    assert len(data["tables"]) == 3


def test_without_a_frontier_there_is_none_on_the_page() -> None:
    data = data_of(render(worth_of(replace(observed(0.1), costs=np.full((N, 2), np.nan)))))
    assert data["frontier"] is None and [one["title"] for one in data["tables"]]
