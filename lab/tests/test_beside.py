"""The table beside other routers: its data, its measures, and the rivals that are ours to write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.arena import play
from benchmarks.beside import code, page, published, result
from benchmarks.beside.bandits import Linear
from benchmarks.beside.curve import Point, area, hull, point, reward_at
from benchmarks.beside.entrants import ENTRANTS, OURS
from benchmarks.beside.field import Field
from benchmarks.beside.litellm_routers import lowest_usage, tiers
from benchmarks.beside.playing import WARM, Job, fixed_points, run
from benchmarks.beside.trained import PREDICTORS, Fitted
from benchmarks.report import SIGNED
from router_state.config import Price
from tests.prose import rewritten


@pytest.fixture(scope="module")
def few() -> Field:
    return code.tasks().take(np.arange(0, 2919, 30))


def test_the_shipped_outcomes_are_those_that_were_published() -> None:
    field = code.tasks()
    assert field.rewards.shape == (2919, 8)
    # Of the published release: the oracle's score, and that of the dearest model.
    assert field.rewards.max(1).mean() == pytest.approx(0.6002, abs=5e-5)
    assert field.rewards[:, 0].mean() == pytest.approx(0.4383, abs=5e-5)
    assert len(code.agentic()) - code.agentic().before == 176
    assert (field.contexts[:, -1] == 1.0).all()
    assert field.contexts[:, :-1].std() < 1.1


def test_a_field_is_the_same_in_the_same_order_and_keeps_what_leads_the_way_in_front() -> None:
    field = code.agentic()
    one, again, other = field.ordered(1), field.ordered(1), field.ordered(2)
    assert np.array_equal(one.costs, again.costs)
    assert not np.array_equal(one.costs, other.costs)
    assert sorted(one.costs[: field.before, 0]) == sorted(field.costs[: field.before, 0])
    half = field.half()
    assert len(half) == len(field) // 2 and 0 < half.before < len(half)


def test_a_hull_rises_and_leaves_out_what_lies_under_it() -> None:
    dollars, rewards = hull([(1.0, 0.0), (2.0, 0.2), (3.0, 0.6), (4.0, 0.5), (5.0, 0.8)])
    assert dollars.tolist() == [1.0, 3.0, 5.0]
    assert rewards.tolist() == [0.0, 0.6, 0.8]
    assert hull([(1.0, 0.5)])[0].tolist() == [1.0]


def test_the_area_of_a_line_is_its_mean() -> None:
    assert area([(0.0, 0.0), (2.0, 1.0)], 0.0, 2.0) == pytest.approx(0.5)
    # What can't be had for less is lowered in proportion; what costs more than asked is flat.
    assert reward_at([(1.0, 0.6)], np.array([0.5, 2.0])).tolist() == [0.3, 0.6]


def test_a_point_counts_the_last_half_and_the_regret() -> None:
    rewards, costs = np.array([[1.0, 0.0], [0.0, 1.0]]), np.full((2, 2), 2.0)
    assert point(rewards, costs, np.array([0, 0])) == Point(0.5, 2.0, 0.0, 2.0, 1.0)


def test_a_linear_bandit_is_ridge_regression_of_reward_less_dollars() -> None:
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(40, 3)), rng.random(40)
    bandit = Linear(0, 5.0, kind="ucb", explore=0.1)
    bandit.models = ("a",)
    bandit.start(1, 3)
    for i, (x, value) in enumerate(zip(X, values, strict=True)):
        bandit.decide(i, x)
        bandit.settle(i, 0.01)
        bandit.learn(i, float(value))
    closed = np.linalg.solve(X.T @ X + np.eye(3), X.T @ (values - 0.05))
    assert bandit.theta[0] == pytest.approx(closed)


@pytest.mark.parametrize("name", ENTRANTS)
def test_every_online_router_plays_and_answers_each_request(name: str, few: Field) -> None:
    entrant = ENTRANTS[name]
    value = entrant.values(few)[3]
    for make in entrant.settings.values():
        trace = play(make(few, 0, value), few.episode(value if entrant.trade == "budget" else None))
        assert len(trace.reason) == len(few)
        assert len(set(trace.chosen.tolist())) > 1


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_trained_router_finds_the_better_model_and_heeds_the_price(name: str) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.ones(200)])
    better = (X[:, 0] > 0).astype(float)
    rewards = np.column_stack([better, 1.0 - better])
    costs = np.tile([0.001, 0.1], (200, 1))
    for predictor in PREDICTORS[name].values():
        fitted = Fitted(*predictor(X, rewards, costs, X))
        assert (fitted.choices(0.0) == 1 - better).mean() > 0.9
        assert (fitted.choices(1e6) == 0).all()


def test_priors_of_a_field_are_its_outcomes_and_live_starts_from_them(few: Field) -> None:
    priors = few.priors()
    name, known = few.models[0], priors[few.models[0]]
    assert known.A is not None and known.b is not None and known.costs is not None
    assert known.b[-1] == pytest.approx(few.rewards[:, 0].sum())
    assert known.n_eff == len(few)
    declared = few.episode(None, priors).declared[0].models[name]
    assert declared.prior is known and declared.cost_prior is known.costs


def test_live_with_priors_earns_more_than_cold_on_what_is_left() -> None:
    warm = run(Job("code", None, WARM, "as shipped", 0))
    cold = run(Job("code", None, OURS, "as shipped", 0))
    assert all(point.reward == point.late_reward for point in warm)
    assert sum(p.late_reward for p in warm) > sum(p.late_reward for p in cold)


def test_tiers_follow_list_prices() -> None:
    prices = tuple(Price(usd, usd) for usd in (3.0, 1.0, 2.0))
    assert tiers(prices, 3) == [3, 1, 2]
    assert tiers(prices[:1], 3) == [1]


def test_what_needs_no_playing_is_between_the_worst_model_and_the_oracle(few: Field) -> None:
    found = fixed_points(few)
    most = found["oracle"][0][1]
    assert all(reward <= most for ((_, reward),) in found.values())
    assert found["best model per kind (hindsight)"][0][1] >= few.rewards.mean(0).max()


def test_a_router_that_is_surely_above_stands_first(tmp_path: Path) -> None:
    ours = [[Point(0.5, 1.0, 0.5, 1.0, 0.0), Point(0.6, 2.0, 0.6, 2.0, 0.0)]] * 2
    better = [[replace(p, reward=p.reward + 0.1, late_reward=p.late_reward + 0.1) for p in ours[0]]]
    played = {OURS: ours, "better": better * 2}
    rows = result.rows(played, {OURS: "", "better": ""}, (), (1.0, 2.0))
    text = page.table(rows)
    assert text.startswith("Above `live` by more than chance, in some column: better.\n")
    assert text.index("| better") < text.index("**live**")
    ahead = next(row for row in rows if row.entrant == "better").ahead
    assert ahead is not None and ahead.value == pytest.approx(-0.1)
    trained = result.rows(played, {OURS: "", "better": ""}, ("better",), (1.0, 2.0))
    assert page.lead({"first": rows, "second": trained, "third": rows[1:]}).splitlines()[2:] == [
        "| first | better | online | +10.00 ± 0.00, all requests |",
        "| second | better | beforehand | +10.00 ± 0.00, last half |",
        "| third | none |  |  |",
    ]


def test_sentences_are_written_as_wide_as_the_page_s(tmp_path: Path) -> None:
    page_file = tmp_path / "beside.md"
    page_file.write_text("<!-- code -->\n<!-- end -->\n")
    names = "; ".join(f"router {n}, 49.98 % (`live` for the same $0.00452)" for n in range(4))
    page.write("code", f"Above `live`: {names}.\n\n| one |", page_file)
    text = SIGNED.sub("Made.", page_file.read_text())
    assert rewritten(text) == text and max(map(len, text.splitlines())) <= 100


def test_litellms_usage_based_routing_evens_out_tokens_and_heeds_no_clock(few: Field) -> None:
    chosen = lowest_usage(few)
    assert np.array_equal(chosen, lowest_usage(few))
    tokens = few.costs / [price.output_price_per_m for price in few.prices]
    used = [tokens[chosen == k, k].sum() for k in range(len(few.models))]
    assert max(used) - min(used) <= tokens.max()


def test_what_is_published_above_live_is_said_first(few: Field) -> None:
    def at(reward: float) -> result.Seeds:
        return [[Point(reward, 0.004, reward, 0.004, 1.0), Point(reward, 0.005, reward, 0.005, 1)]]

    said = published.beside("code", {OURS: at(0.48), "LinUCB": at(0.4)}, few).splitlines()
    assert said[0].startswith("Published above `live`: ACRouter, 49.98 %") and "kNN" not in said[0]
    assert said[-1].startswith("| LinUCB, dollars for nothing | 40.00 |")
    assert "priors" not in said[0]
    warm = published.beside("code", {OURS: at(0.48)}, few, at(0.49))
    assert "with priors, on the last half of the tasks: 49.00 %)" in warm.splitlines()[0]
    above_all = published.beside("code", {OURS: at(0.9)}, few)
    assert above_all.startswith("Published above `live`: none.")


def test_points_without_a_knob_stand_beside_live_at_the_same_dollars() -> None:
    fixed = {"always a": [(1.0, 0.4)], "b": [(2.0, 0.9)], "cheap": [(0.5, 0.1)]}
    text = page.points(fixed, [(1.0, 0.5), (2.0, 0.7)])
    assert text.splitlines()[2:] == [
        "| b | 2.00000 | 90.00 | -20.00 |",
        "| always a | 1.00000 | 40.00 | +10.00 |",
        "| cheap | 0.50000 | 10.00 |  |",
    ]


def test_a_table_is_written_between_its_own_markers_again_and_again(tmp_path: Path) -> None:
    page_file = tmp_path / "beside.md"
    page_file.write_text("a\n<!-- code -->\n<!-- end -->\nb\n<!-- paper -->\n<!-- end -->\n")
    for text in ("| one |", "| two |"):
        page.write("code", text, page_file)
    told = SIGNED.sub("Made.", page_file.read_text())
    between = "<!-- code -->\n\n| two |\n\nMade.\n\n<!-- end -->"
    assert told == f"a\n{between}\nb\n<!-- paper -->\n<!-- end -->\n"
    with pytest.raises(ValueError, match="other"):
        page.write("other", "", page_file)
