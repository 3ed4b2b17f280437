"""Scenarios: what is accepted, and what they do to a history."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from msgspec.structs import replace

from benchmarks.history import ROUTER, write_history
from drawing.pareto import Pareto, Point
from studies.history.encoded import Contexts
from studies.history.happened import Declared
from studies.history.merge import Merge
from studies.history.records import JsonlHistory
from studies.history.rerun import Rerun
from studies.history.skipped import Skipped
from studies.history.verify import Verdict, verify
from studies.simulate.answer import answer, beside_mix, doubt
from studies.simulate.case_file import CaseFile
from studies.simulate.cases import Case, Cases
from studies.simulate.estimators import OffPolicy
from studies.simulate.figures import figures, phases_csv, series_csv
from studies.simulate.limits import NO_LINES
from studies.simulate.scenario import BadScenario, Scenario, load_scenario, named
from studies.simulate.study import MOST_CHANGES, Study, Survey, run, study, survey
from studies.simulate.study_charts import marks_of
from studies.simulate.study_page import render
from studies.simulate.track import Track
from studies.simulate.world import World
from tests.drawing.test_drawing import data_of
from tests.pages import ROOT

MODELS = ("small", "middle", "large")
PRICES = ((0.1, 0.1), (0.5, 1.5), (1.25, 10.0))
N = 1200
SCENARIOS = ROOT / "docs" / "scenarios"


def unused(*_: Any) -> Any:
    raise AssertionError("not needed here")


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., JsonlHistory]:
    rng = np.random.default_rng(3)
    contexts = np.column_stack([rng.normal(size=(N, 5)), np.ones(N)])
    rewards = np.clip(np.array([0.78, 0.9, 0.94]) + rng.normal(0, 0.05, (N, 3)), 0, 1)
    costs = np.array([2.9e-5, 5.3e-4, 1.5e-2]) * rng.lognormal(0, 0.4, (N, 3))
    models = {
        m: {"input_price_per_m": p[0], "output_price_per_m": p[1]}
        for m, p in zip(MODELS, PRICES, strict=True)
    }
    made: dict[str, JsonlHistory] = {}

    def history(
        *,
        outcomes: bool = True,
        epsilon: float = 0.0,
        profile: str = "live",
        budget: float = 6e-4,
        n: int = N,
    ) -> JsonlHistory:
        name = f"{outcomes}-{epsilon}-{profile}-{budget}-{n}"
        if name not in made:
            folder = tmp_path_factory.mktemp("history") / name
            declared = {
                "models": models,
                "budget_usd_per_request": budget,
                "dimensions": 6,
                "profile": profile,
                "epsilon": epsilon,
            }
            write_history(
                folder,
                declared=declared,
                models=MODELS,
                contexts=contexts[:n],
                rewards=rewards[:n],
                costs=costs[:n],
                outcomes=outcomes,
            )
            made[name] = JsonlHistory(folder)
        return made[name]

    return history


def played(history: JsonlHistory, **scenario: Any) -> Study:
    happened = Merge(history, 0, refused={}, skipped=Skipped(), router_id=ROUTER)
    return study(
        happened, Scenario.model_validate(scenario), contexts=Contexts(unused), read_prior=unused
    )


def surveyed(history: JsonlHistory) -> tuple[CaseFile, Survey]:
    skipped, kept = Skipped(), CaseFile()
    read = Cases(
        Merge(history, 0, refused={}, skipped=skipped, router_id=ROUTER),
        contexts=Contexts(unused),
        skipped=skipped,
    )
    return kept, survey(kept.keep(read), Scenario())


def test_what_was_declared_on_the_way_is_drawn_with_the_scenario_and_the_last_of_it(
    histories: Any,
) -> None:
    kept, _ = surveyed(histories())
    with kept:
        cases = list(kept)
    declared = next(case for case in cases if isinstance(case, Declared))
    assert declared.router is not None
    changed: list[Case | Declared] = []
    for case in cases:
        changed.append(case)
        if isinstance(case, Case) and case.index % 40 == 39:
            edit = {"budget_usd_per_request": 1e-4 * (1 + case.index)}
            router = declared.router.model_copy(update=edit)
            changed.append(replace(declared, router=router))
    event = {"kind": "price", "model": "small", "factor": 2, "at": 700}
    scenario = Scenario.model_validate({"policies": ["live"], "events": [event]})
    found = survey(changed, scenario)
    assert len(found.changes) == MOST_CHANGES < N // 40
    assert found.changes[-1] == (N, "budget $0.116 → $0.12")
    marks = marks_of(run(changed, found, scenario, read_prior=unused))
    assert [at for at, _ in marks] == sorted(at for at, _ in marks)
    assert (700.0, "small: price × 2") in marks and (1160.0, "budget $0.112 → $0.116") in marks


def mean(found: Study, policy: str, phase: int, what: str) -> Any:
    return getattr(found.runs[policy].track.phases[phase], what)


@pytest.mark.parametrize("profile", ["paper", "live"])
def test_a_written_history_verifies_to_the_bit(histories: Any, profile: str) -> None:
    verdict = Verdict()
    skipped = Skipped()
    rerun = Rerun(
        contexts=Contexts(unused), rank_of=lambda source: 0, read_prior=unused, skipped=skipped
    )
    verify(Merge(histories(profile=profile), 0, refused={}, skipped=skipped), rerun, verdict)
    assert verdict.identical == verdict.compared == N and verdict.holds


def test_one_changed_reward_is_found_as_the_first_difference(
    histories: Any, tmp_path: Path
) -> None:
    source = histories()._folder
    for path in source.iterdir():
        lines = path.read_bytes().splitlines(keepends=True)
        if path.name == "rewards-0.jsonl":
            body = orjson.loads(lines[300])
            body["value"]["reward"] = 0.0
            lines[300] = orjson.dumps(body) + b"\n"
        (tmp_path / path.name).write_bytes(b"".join(lines))
    rerun = Rerun(
        contexts=Contexts(unused), rank_of=lambda source: 0, read_prior=unused, skipped=Skipped()
    )
    verdict = verify(Merge(JsonlHistory(tmp_path), 0, refused={}, skipped=Skipped()), rerun)
    difference = verdict.differences[ROUTER]
    assert not verdict.holds
    assert difference.recorded.seq == verdict.equal + 1 > 300


def test_the_same_history_and_scenario_give_the_same_bytes(histories: Any) -> None:
    scenario = {
        "policies": ["live", "random"],
        "events": [{"kind": "lose", "share": 0.2}, {"kind": "duplicate", "share": 0.2}],
    }
    first, second = (played(histories(), **scenario) for _ in range(2))
    assert orjson.dumps(figures(first)) == orjson.dumps(figures(second))
    assert phases_csv(first) == phases_csv(second) and series_csv(first) == series_csv(second)


def test_as_recorded_the_declared_policy_does_what_history_did(histories: Any) -> None:
    found = played(histories(), policies=["declared", "recorded"])
    assert found.runs["declared"].track.total.calls == found.runs["recorded"].track.total.calls


def test_a_price_step_changes_bills_and_an_announced_one_the_declaration(histories: Any) -> None:
    events = [{"kind": "price", "model": "large", "factor": 0.01, "at": 400, "until": 800}]
    found = played(histories(), policies=["live", "large"], events=events)
    before, during, after = (mean(found, "large", phase, "mean_cost_usd") for phase in range(3))
    assert during == pytest.approx(before * 0.01, rel=0.1) and after == pytest.approx(
        before, rel=0.1
    )
    calls = [found.runs["live"].track.phases[phase].calls.get("large", 0) for phase in range(3)]
    assert calls[0] < 50 and calls[1] > 3 * calls[0] + 50


def test_a_ramp_moves_in_steps(histories: Any) -> None:
    events = [{"kind": "price", "model": "large", "factor": 4.0, "at": 0, "over": 1200}]
    found = played(histories(), policies=["large"], events=events)
    assert mean(found, "large", 0, "mean_cost_usd") == pytest.approx(1.5e-2 * 1.09 * 2.3, rel=0.15)


def test_quality_drops_and_recovers(histories: Any) -> None:
    events = [{"kind": "quality", "model": "middle", "to": 0.3, "at": "25%", "until": "50%"}]
    found = played(histories(), policies=["middle"], events=events)
    assert [round(mean(found, "middle", phase, "mean_reward"), 1) for phase in range(3)] == [
        0.9,
        0.3,
        0.9,
    ]


def test_a_model_joins_and_leaves(histories: Any) -> None:
    events = [
        {"kind": "add", "model": "middle", "at": 400},
        {"kind": "remove", "model": "small", "at": 800},
    ]
    found = played(histories(), policies=["live"], events=events)
    calls = [phase.calls for phase in found.runs["live"].track.phases]
    assert "middle" not in calls[0] and calls[1]["middle"] > 20 and "small" not in calls[2]


def test_outage_earns_nothing_and_budget_follows(histories: Any) -> None:
    events = [
        {"kind": "outage", "model": "middle", "at": 600},
        {"kind": "budget", "usd_per_request": 1e-4, "at": 600},
    ]
    found = played(histories(), policies=["middle", "live"], events=events)
    assert mean(found, "middle", 1, "mean_reward") == 0.0
    assert found.runs["live"].track.phases[1].budget_usd == pytest.approx(600 * 1e-4)


def test_traffic_repeats_and_thins(histories: Any) -> None:
    events = [
        {"kind": "traffic", "factor": 3, "at": 400, "until": 800},
        {"kind": "traffic", "factor": 0.5, "at": 800},
    ]
    found = played(histories(), policies=["live"], events=events)
    assert [phase.requests for phase in found.runs["live"].track.phases] == [400, 1200, 200]


def test_delays_replace_or_lengthen_the_recorded_lag(histories: Any) -> None:
    events = [
        {"kind": "delay", "what": "costs", "to": 0, "until": 600},
        {"kind": "delay", "by": 270, "at": 600},
    ]
    world = played(histories(), events=events).world
    assert [world.lags(at, 0, "costs", 30) for at in (0, 599, 600)] == [[0], [0], [300]]
    assert [world.lags(at, 0, "rewards", 100) for at in (0, 600)] == [[100], [370]]


def test_lost_and_doubled_feedback_is_the_share_that_was_said(histories: Any) -> None:
    events = [
        {"kind": "lose", "what": "costs", "share": 0.3},
        {"kind": "duplicate", "what": "rewards", "share": 0.1},
    ]
    world = played(histories(), events=events).world
    assert 0.26 < sum(not world.lags(at, 0, "costs", 30) for at in range(5000)) / 5000 < 0.34
    assert (
        0.08 < sum(len(world.lags(at, 0, "rewards", 100)) == 2 for at in range(5000)) / 5000 < 0.12
    )


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ({"events": [{"kind": "price", "model": "other", "factor": 2}]}, "'other' is unknown"),
        ({"policies": ["other"]}, "'other' is unknown"),
        ({"events": [{"kind": "add", "model": "other", "at": 5}]}, "unknown"),
    ],
)
def test_unknown_models_are_named(histories: Any, scenario: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadScenario, match=problem):
        played(histories(), **scenario)


def test_a_declared_model_that_was_never_called_is_not_said_to_be_unknown() -> None:
    events: Any = [{"kind": "price", "model": "dear", "factor": 2}]
    scenario = Scenario.model_validate({"events": events})
    with pytest.raises(BadScenario, match="'dear' is declared, but history never called it"):
        World(scenario, requests=9, index_of={}, models={"small"}, declared={"small", "dear"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("events: [{kind: price, model: m}]", "events.0.factor: Field required"),
        (
            "events: [{kind: quality, model: m, to: 0.5, shift: 0.1}]",
            "events.0: say one of to, shift, factor",
        ),
        ("events: [{kind: nonsense}]", "events.0: kind must be one of 'price', 'quality', "),
        ("events: [{at: 5}]", "events.0: kind is missing"),
        ("events: [{kind: budget}]", "events.0: say one of usd_per_request, "),
        ("events: [{kind: budget, usd: 5}]", "events.0: a budget of a period needs usd and per"),
        (
            "events: [{kind: budget, usd: 5, per: month, usd_per_request: 1}]",
            "events.0: say one of usd_per_request, factor, usd and per",
        ),
        (
            "policies: [{name: a, profile: live, knobs: {gama: 1}}]",
            "policies.0: unknown knobs gama; there are alpha, ",
        ),
        (
            "policies: [{name: a, profile: live, knobs: {alpha: x}}]",
            "policies.0.knobs.alpha: must be a number, or true or false",
        ),
        ("policies: [live, live]", "scenario: policies need different names"),
        ("nonsense: 1", "nonsense: Extra inputs are not permitted"),
        (
            "events: [{kind: traffic, factor: 2, at: soon}]",
            "events.0.at: must be the index of a request, ",
        ),
        ("{", "no YAML: "),
    ],
)
def test_a_wrong_scenario_is_refused_with_a_line_a_problem(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(BadScenario) as refused:
        load_scenario(path)
    assert str(refused.value).startswith(f"{path}: {said}")
    assert text == "{" or "\n" not in str(refused.value)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_valid(path: Path) -> None:
    assert load_scenario(path).events


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("outcomes", [True, False])
def test_the_examples_run_on_a_history_of_any_models(
    histories: Any, path: Path, outcomes: bool
) -> None:
    happened = Merge(
        histories(outcomes=outcomes, n=400), 0, refused={}, skipped=Skipped(), router_id=ROUTER
    )
    found = study(happened, load_scenario(path), contexts=Contexts(unused), read_prior=unused)
    told = json.dumps(figures(found))
    assert all(run.track.requests for run in found.runs.values()) and "$middle" not in told


def test_names_of_roles_stand_for_models_by_their_prices(histories: Any) -> None:
    events = [{"kind": "budget", "factor": 0.5}, {"kind": "outage", "model": "$dearest"}]
    found = played(histories(n=200), policies=["$cheapest", "$middle", "small"], events=events)
    assert list(found.runs) == ["small", "middle"]
    assert getattr(found.scenario.events[1], "model", None) == "large"
    assert found.runs["middle"].budget_usd == pytest.approx(3e-4)
    with pytest.raises(BadScenario, match="no model is both declared and called"):
        named(Scenario.model_validate({"policies": ["$dearest"]}), [])


@pytest.mark.parametrize("outcomes", [True, False])
def test_policies_are_compared_with_the_best_fixed_mix_at_their_cost(
    histories: Any, outcomes: bool
) -> None:
    found = played(histories(outcomes=outcomes, epsilon=0.3, budget=0.004), policies=["random"])
    told = beside_mix(found, found.runs["random"])
    assert told is not None
    gap, half = (float(one) for one in told.removesuffix(", which chance may make").split(" ± "))
    # Chance is a fixed mix itself, and not the best one: the middle model is nearly the best.
    mix = Pareto(
        [
            Point(m, one.track.total.mean_cost_usd or 0, one.track.total.mean_reward or 0)
            for m, one in found.alone.items()
        ]
    ).mix_at(found.runs["random"].track.total.mean_cost_usd or 0)
    assert mix is not None
    reward = found.runs["random"].track.total.mean_reward or 0.0
    assert gap == pytest.approx(reward - mix.quality, abs=6e-4) and 0.0 < half < 0.05
    assert any("random beside the best fixed mix" in one for one in answer(found))
    assert beside_mix(found, found.alone["small"]) is None


def test_guesses_are_counted_and_deterministic_history_supports_no_weighted_estimate(
    histories: Any,
) -> None:
    found = played(histories(outcomes=False, profile="paper"), policies=["large", "recorded"])
    total = found.runs["large"].track.total
    assert total.modelled > 1000
    assert (
        not found.runs["large"].reward.supported
        and "no chance" in found.runs["large"].reward.verdict()
    )
    assert found.runs["recorded"].reward.supported
    # In the report it stands below all that was played.
    assert "not supported" in json.dumps(data_of(render(found))["tables"][-1])


def test_exploration_makes_estimates_that_cover_the_truth(histories: Any) -> None:
    truth = {
        policy: mean(
            played(histories(epsilon=0.3, budget=0.02), policies=[policy]), policy, 0, "mean_reward"
        )
        for policy in ("large", "small")
    }
    found = played(histories(outcomes=False, epsilon=0.3, budget=0.02), policies=list(truth))
    for policy, value in truth.items():
        off = found.runs[policy].reward
        robust = off.estimates()["doubly robust"]
        assert off.supported and robust.half_width is not None
        assert abs(robust.value - value) < 1.5 * robust.half_width < 0.1


def test_a_history_that_chose_by_products_is_not_supported_in_every_output(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(N, 5))
    products = features * np.roll(features, 1, axis=1)
    shown, seen = (np.column_stack([one, np.ones(N)]) for one in (features, products))
    expected = 0.6 + 0.15 * products[:, :3]
    declared = {
        "models": {m: {"input_price_per_m": 0.1, "output_price_per_m": 0.4} for m in MODELS},
        "dimensions": 6,
        "profile": "paper",
    }
    write_history(
        tmp_path,
        declared=declared,
        models=MODELS,
        contexts=seen,
        recorded=shown,
        rewards=np.clip(expected + rng.normal(0.0, 0.05, (N, 3)), 0.0, 1.0),
        costs=np.full((N, 3), 1e-4) * rng.lognormal(0.0, 0.4, (N, 3)),
        outcomes=False,
    )
    found = played(JsonlHistory(tmp_path), policies=["large", "recorded"])
    off = found.runs["large"].reward
    assert not off.supported and off.direct.half_width is None
    told = figures(found)
    assert any("not supported: history chose by products" in line for line in told["answer"])
    estimates = told["policies"]["large"]["estimates"]["reward"]
    assert not estimates["supported"] and NO_LINES in estimates["verdict"]
    assert estimates["direct"]["half_width"] is None
    page = json.dumps(data_of(render(found)))
    assert page.count("history chose by products of features") >= 2
    assert "earned" in told["answer"][0]


def test_what_history_had_ruled_out_is_not_estimated_from_it(histories: Any) -> None:
    history = histories(outcomes=False, epsilon=0.3, budget=4.4e-4)
    found = played(history, policies=["large", "small"])
    off = found.runs["large"].reward  # of which few calls are made before its first bills are in
    assert 0.8 < off.support < 0.99 and list(off.estimates()) == ["direct"]
    assert "had ruled that model out" in off.verdict()
    # The cheap one always had a chance.
    assert found.runs["small"].reward.support == 1.0


@pytest.mark.parametrize("budget", [6e-4, 2e-3, 0.02])
def test_weights_average_one_at_tight_and_loose_budgets(histories: Any, budget: float) -> None:
    history = histories(outcomes=False, epsilon=0.3, budget=budget)
    off = played(history, policies=["small"]).runs["small"].reward
    assert off.supported
    assert abs(off.weight.mean - 1.0) < 1.5 * off.weight.half_width < 0.3


def test_weights_that_do_not_average_one_support_nothing() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    called = np.where(rng.random(n) < 0.25, "m", "other").tolist()
    chance = np.ones(n, dtype=bool)

    def judged(propensity: float) -> OffPolicy:
        off = OffPolicy()
        half = np.full(n, 0.5)
        logged = np.full(n, propensity)
        off.observe(["m"] * n, called, logged, rng.random(n), half, half, chance=chance)
        return off

    assert judged(0.25).supported
    for logged in (0.2, 0.5):
        assert not judged(logged).supported and "instead of 1" in judged(logged).verdict()


def _track(rewards: list[float]) -> Track:
    track = Track("one", [])
    for index, reward in enumerate(rewards):
        track.observe(
            index,
            model="m",
            reward=reward,
            cost_usd=None,
            budget_usd=None,
            lambda_t=0.0,
            modelled=False,
        )
    track.finish()
    return track


def test_the_doubt_of_a_difference_covers_what_chance_makes_of_it() -> None:
    rng = np.random.default_rng(3)
    quality = rng.random(4000)
    best, same, worse = (
        _track((quality + rng.normal(-drop, 0.2, 4000)).tolist()) for drop in (0.0, 0.0, 0.1)
    )
    apart = (best.total.mean_reward or 0.0) - (worse.total.mean_reward or 0.0)
    half = doubt(worse, best)
    assert half is not None and half < apart
    assert abs((best.total.mean_reward or 0.0) - (same.total.mean_reward or 0.0)) < 2 * (
        doubt(same, best) or 0.0
    )
    assert doubt(_track([0.1, 0.2]), _track([0.3, 0.4])) is None


@pytest.mark.parametrize("factor", [1, 3])
def test_a_period_s_budget_is_played_and_spent_whatever_the_traffic(
    histories: Any, factor: int
) -> None:
    events = [
        {"kind": "budget", "usd": 0.6, "per": "week"},
        {"kind": "traffic", "factor": factor, "at": "50%"},
    ]
    found = played(histories(), policies=["live", "declared", "paper"], events=events)
    for name in ("live", "declared"):
        total = found.runs[name].track.total
        assert total.cost_usd <= 0.6 * 1.005
    assert "budget $0.6 per week" in json.dumps(data_of(render(found)))
