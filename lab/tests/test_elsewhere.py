"""The worlds that policies are compared in: drawn alike from the same number, and measured as they
should be.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import off_policy
from benchmarks.arena import Trace, play
from benchmarks.elsewhere.__main__ import main
from benchmarks.elsewhere.contenders import CONTENDERS
from benchmarks.elsewhere.drawn import drawn, recipe
from benchmarks.elsewhere.made import ORDERS, ordered, tasks, winner
from benchmarks.elsewhere.measures import measured, references, windows
from benchmarks.elsewhere.running import Job, run_all
from studies.warm_start.lines import held_out

SHORT = 0.2


@pytest.mark.parametrize("number", range(12))
def test_a_drawn_world_is_the_same_again_and_within_its_bounds(number: int) -> None:
    world, again = (drawn(number, seconds=SHORT) for _ in range(2))
    for one, other in (
        (world.rewards, again.rewards),
        (world.costs, again.costs),
        (world.contexts, again.contexts),
    ):
        assert np.array_equal(one, other)
    assert world.rewards.min() >= 0.0 and world.rewards.max() <= 1.0
    assert world.costs.min() >= 0.0 and np.isfinite(world.costs).all()
    assert (world.contexts[:, -1] == 1.0).all()
    assert (
        world.expected is not None
        and np.abs(world.rewards.mean(0) - world.expected.mean(0)).max() < 0.1
    )
    measured_from = world.phases["learned"].start
    assert np.isfinite(world.reward_delay[:measured_from]).sum() >= 0.7 * 100 * len(world.models)
    assert world.budget >= world.costs[world.phases["learned"]].mean(0).min()


@pytest.mark.parametrize("number", range(4))
def test_what_is_revealed_of_a_drawn_world_has_no_chance_left_and_the_rest_is_as_it_was(
    number: int,
) -> None:
    world = drawn(number, seconds=SHORT)
    rewards = drawn(number, seconds=SHORT, revealed=("rewards",))
    costs = drawn(number, seconds=SHORT, revealed=("costs",))
    assert world.expected is not None and np.array_equal(rewards.rewards, world.expected)
    assert np.array_equal(rewards.costs, world.costs)
    assert np.array_equal(costs.rewards, world.rewards)
    first = costs.costs[0]
    if recipe(number, seconds=SHORT).shifts == "none":
        assert (costs.costs == first).all()
        assert first == pytest.approx(world.costs.mean(0))
    else:  # at most one model becomes dearer or cheaper, by three at most
        factors = costs.costs / np.where(first > 0.0, first, 1.0)
        assert (np.ptp(factors, axis=0) > 1e-9).sum() <= 1
        assert factors.max() <= 3.0 + 1e-9


@pytest.mark.parametrize("number", range(12))
def test_another_seed_draws_other_requests_for_the_same_models(number: int) -> None:
    world, other, again = (drawn(number, seconds=SHORT, seed=seed) for seed in (1, 2, 2))
    assert (world.prices, world.facts, len(world)) == (other.prices, other.facts, len(other))
    assert not np.array_equal(world.contexts, other.contexts)
    assert not np.array_equal(world.rewards, other.rewards)
    for name in ("contexts", "rewards", "costs", "bill_delay", "reward_delay", "input_tokens"):
        assert np.array_equal(getattr(other, name), getattr(again, name))
    assert world.expected is not None
    assert other.expected is not None
    # What a model earns on average is no matter of chance, but for what the prompts are.
    assert np.abs(world.expected.mean(0) - other.expected.mean(0)).max() < 0.1


def test_drawn_worlds_differ_in_everything() -> None:
    recipes = [recipe(number, seconds=6.0) for number in range(300)]
    assert {r.K for r in recipes} >= {2, 3, 8, 32} and max(r.K for r in recipes) >= 60
    assert {2, 26, 385} <= {r.d for r in recipes}
    assert min(r.sigma for r in recipes) < 0.06 and max(r.sigma for r in recipes) > 0.45
    assert {r.judged for r in recipes} >= {1.0, 0.1, 0.01} and {r.in_flight for r in recipes} >= {
        0.0,
        300.0,
    }
    assert {r.shifts for r in recipes} == {"none", "abrupt", "slow"}


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_has_every_row_once(order: str) -> None:
    sources = np.repeat(np.arange(3), (50, 400, 450))
    rows = ordered(sources, order, np.random.default_rng(0))
    assert sorted(rows) == list(range(900))
    changes = int((np.diff(sources[rows]) != 0).sum())
    assert changes == 2 if order == "in turn" else changes > 2


def test_a_window_is_a_thousand_requests_after_the_first_300() -> None:
    ratio = np.ones(3300)
    ratio[:300] = 9.0
    ratio[1000:1100] = 2.0
    assert windows(ratio) == pytest.approx((1.1, 1.0))


def test_the_line_finds_what_is_linear() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(500, 5)), np.ones((500, 1))], axis=1)
    outcomes = X @ rng.normal(size=(6, 2)) + 0.1 * rng.normal(size=(500, 2))
    assert np.abs(held_out(X, outcomes) - outcomes).mean() < 0.1


def test_the_mix_of_a_phase_may_be_chosen_on_more_requests() -> None:
    world = winner(0)
    # In the phase the second model is better by chance, over all requests the first one.
    rewards = np.zeros_like(world.rewards)
    rewards[:, 0], rewards[-50:, 1] = 0.9, 1.0
    costs = np.full_like(world.costs, 0.5 * world.budget)
    phases = {"end": slice(len(rewards) - 50, len(rewards))}
    short = replace(world, rewards=rewards, expected=None, costs=costs, phases=phases)
    whole = replace(short, mixed_on={"end": slice(0, len(rewards))})
    assert references(short)["best fixed mix"]["phases"]["end"] == pytest.approx((0.5, 1.0))
    assert references(whole)["best fixed mix"]["phases"]["end"] == pytest.approx((0.5, 0.9))


def test_the_winner_is_the_best_mix_and_found_by_whoever_takes_it() -> None:
    world = winner(0)
    best = world.facts["best"]
    trace = Trace.start(len(world))
    trace.chosen[400:] = best
    trace.chosen[:400] = (best + 1) % 10
    at = np.arange(len(world))
    trace.reward[:], trace.cost[:] = world.rewards[at, trace.chosen], world.costs[at, trace.chosen]
    found = measured(world, trace)
    assert found["share"] == 1.0 and 390 < found["found_at"] <= 400
    mix = references(world)["best fixed mix"]["phases"]["after 400"]
    assert mix[1] == pytest.approx(found["phases"]["after 400"][1])


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_plays(name: str) -> None:
    world = tasks("mixed", 0)
    trace = play(CONTENDERS[name](0), world.episode(), until=150)
    assert len(trace.reason) == 150


def test_the_command_ends_with_a_line_of_json() -> None:
    told = CliRunner().invoke(
        main, ["--where", "winner", "--seeds", "1", "--policy", "live"], catch_exceptions=False
    )
    figures = json.loads(told.stdout.splitlines()[-1])
    assert figures["benchmark"] == "elsewhere" and figures["figures"]["floors"] >= 2
    assert any(row.get("policy") == "best fixed mix" for row in figures["figures"]["rows"])


def test_estimates_from_an_exploring_history_hold_against_the_truth() -> None:
    found = off_policy.one({"world": "lines", "history": "ε 0.2", "seed": 0})
    for kind in off_policy.KINDS:
        asked, given, held, width, error = found[f"reward, {kind}"]
        assert asked == 6 and given >= 5
        assert held >= given - 1 and error < width < 0.25 * given


def test_intervals_hold_bills_that_few_prompts_make_up() -> None:
    found = [
        off_policy.one({"world": "products", "history": "ε 0.2", "seed": seed}) for seed in range(8)
    ]
    for kind in ("inverse propensity", "doubly robust"):
        _, given, held, _, _ = np.sum([one[f"cost, {kind}"] for one in found], axis=0)
        # By the spread of the weighted calls alone 8 of 10 hold.
        assert held >= 0.93 * given and given >= 20


def test_kept_results_are_not_played_again(tmp_path: Path) -> None:
    kept = tmp_path / "results.jsonl"
    first = run_all([Job("winner", 0, ("paper",))], workers=1, kept=kept)
    lines = kept.read_text().splitlines()
    again = run_all([Job("winner", 0, ("paper",))], workers=1, kept=kept)
    assert kept.read_text().splitlines() == lines and json.loads(json.dumps(first)) == again
    more = run_all([Job("winner", 0, ("paper", "LinUCB"))], workers=1, kept=kept)
    assert len(kept.read_text().splitlines()) == len(lines) + 1 and {r["policy"] for r in more} >= {
        "paper",
        "LinUCB",
        "hindsight",
    }
