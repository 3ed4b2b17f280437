"""The demo's pure parts: traffic, shocks, yardsticks, the report."""

from __future__ import annotations

import io
import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from commands.demo import show
from commands.demo.benchmark import load_rows, wheel_priors
from commands.demo.demo_clients import Delays, Sent, Traffic
from commands.demo.demo_play import Scenario
from commands.demo.paper_models import held_out_prompts, paper_router
from commands.demo.player import Play
from commands.demo.ramp import SHARES, on_a_ramp
from commands.demo.report import Report
from commands.demo.series import series_of
from commands.demo.shocks import SHOCKS
from commands.demo.yardsticks import BEST_MIX, Yardstick, best_mix, yardsticks
from doors.console.failures import Failure
from schemas import (
    AlertRaised,
    CostReported,
    LambdaUpdated,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    RouterDeclared,
    RouteReason,
)
from schemas.alerts import AlertKind
from schemas.routers import ModelDeclared
from streams.priors.fitted_priors import Priors
from streams.settings import load_settings
from studies.warm_start.fit import fit_costs
from studies.warm_start.observations import Observations
from tests.drawing.test_drawing import data_of
from watching.board import Board

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MODELS = ("a/small", "b/middle", "c/large")


def scenario(count: int = 300) -> Scenario:
    rng = np.random.default_rng(1)
    models = {
        name: ModelDeclared(input_price_per_m=price, output_price_per_m=price)
        for name, price in zip(MODELS, (0.1, 1, 10), strict=True)
    }
    declared = RouterDeclared(router_id="default", models=models, budget_usd_per_request=0.001)
    return Scenario(
        models=MODELS,
        prompts=[f"prompt {number}" for number in range(count)],
        rewards=rng.uniform(0.5, 1.0, (count, 3)),
        costs=rng.uniform(0.5, 1.5, (count, 3)) * [1e-4, 1e-3, 1e-2],
        available=np.ones((count, 3), dtype=bool),
        declarations=((0, declared),),
    )


def decide(
    request_id: str, *, model: str = MODELS[1], seq: int = 1, repeat: bool = False
) -> RouteDecided:
    return RouteDecided(
        router_id="default",
        request_id=request_id,
        model=model,
        seq=seq,
        reason=RouteReason.UCB,
        propensity=1.0,
        expected_reward=0.9,
        expected_cost_usd=0.001,
        lambda_t=0.1,
        config_offset=0,
        decided_at=NOON,
        repeat=repeat,
    )


def play_out(traffic: Traffic) -> list[tuple[int, Sent]]:
    """Answer each request at once; return every event with the number of decisions that came before
    it.
    """
    log: list[tuple[int, Sent]] = []
    while not traffic.done:
        sent = traffic.step()
        log += [(len(traffic.outcomes), event) for event in sent]
        asked = [event for event in sent if isinstance(event, RequestSubmitted)]
        assert asked or traffic.done, "traffic neither asks nor ends"
        for event in asked:
            traffic.answer(decide(event.request_id, seq=len(traffic.outcomes) + 1))
    return log


def test_every_request_is_asked_once_and_gets_one_bill_and_one_reward() -> None:
    traffic = Traffic(scenario(), in_flight=50)
    log = play_out(traffic)
    for kind in (RequestSubmitted, CostReported, RewardObserved):
        ids = [event.request_id for _, event in log if isinstance(event, kind)]
        assert len(ids) == len(set(ids)) == 300


def play_one_by_one(traffic: Traffic) -> tuple[dict[str, int], list[tuple[int, Sent]]]:
    """Answer one request at a time; return how many decisions came before each one's, and before
    each event.
    """
    decided: dict[str, int] = {}
    log: list[tuple[int, Sent]] = []
    waiting: list[str] = []
    while not traffic.done:
        for event in traffic.step():
            log.append((len(traffic.outcomes), event))
            if isinstance(event, RequestSubmitted):
                waiting.append(event.request_id)
        if waiting:
            request_id = waiting.pop(0)
            decided[request_id] = len(traffic.outcomes)
            traffic.answer(decide(request_id))
    return decided, log


def test_bills_come_some_30_decisions_later_and_rewards_some_100() -> None:
    decided, log = play_one_by_one(Traffic(scenario(), in_flight=1000))
    # The last ones come at once, as no more decisions follow.
    bills = [
        at - decided[event.request_id] for at, event in log if isinstance(event, CostReported)
    ][:200]
    rewards = [
        at - decided[event.subject] for at, event in log if isinstance(event, RewardObserved)
    ][:150]
    assert 21 <= min(bills) <= max(bills) <= 41
    assert 70 <= min(rewards) <= max(rewards) <= 132


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_no_more_requests_are_in_flight_than_allowed_and_a_small_limit_does_not_stop_it(
    limit: int,
) -> None:
    traffic = Traffic(scenario(60), in_flight=limit)
    unbilled = 0
    for _, event in play_out(traffic):
        unbilled += isinstance(event, RequestSubmitted) - isinstance(event, CostReported)
        assert unbilled <= limit


def test_the_same_seed_plays_the_same() -> None:
    logs = [play_out(Traffic(scenario(), seed=seed)) for seed in (3, 3, 4)]
    assert logs[0] == logs[1] != logs[2]


def test_a_repeated_answer_changes_nothing_and_a_contradiction_is_an_error() -> None:
    traffic = Traffic(scenario(5))
    request = next(event for event in traffic.step() if isinstance(event, RequestSubmitted))
    traffic.answer(decide(request.request_id))
    traffic.answer(decide(request.request_id, repeat=True))
    assert len(traffic.outcomes) == 1
    with pytest.raises(ValueError, match="to b/middle and to a/small"):
        traffic.answer(decide(request.request_id, model=MODELS[0]))
    with pytest.raises(ValueError, match="was not asked"):
        traffic.answer(decide("never"))


def test_a_refused_request_counts_as_answered() -> None:
    traffic = Traffic(scenario(1))
    traffic.step()
    traffic.refuse("r-00001", "wrong_context")
    assert traffic.done
    assert traffic.refused == {"r-00001": "wrong_context"}
    assert traffic.in_flight == 0


def test_contexts_are_sent_instead_of_prompts_where_there_are_some() -> None:
    with_contexts = replace(scenario(3), contexts=np.array([[0.5, 1.0]] * 3))
    requests = [
        event for event in Traffic(with_contexts).step() if isinstance(event, RequestSubmitted)
    ]
    assert [event.context for event in requests] == [(0.5, 1.0)] * 3
    assert all(event.prompt is None for event in requests)


def test_declarations_come_just_before_the_request_they_are_for() -> None:
    shocked = SHOCKS["price-cut"](scenario(30))
    events = [event for _, event in play_out(Traffic(shocked, delays=Delays(cost=0, reward=0)))]
    after = [
        next(later.request_id for later in events[at:] if isinstance(later, RequestSubmitted))
        for at, event in enumerate(events)
        if isinstance(event, RouterDeclared)
    ]
    assert after == ["r-00001", "r-00011", "r-00021"]


def test_a_declaration_waits_until_all_requests_before_it_are_decided() -> None:
    _, log = play_one_by_one(Traffic(SHOCKS["price-cut"](scenario(30))))
    assert [decided for decided, event in log if isinstance(event, RouterDeclared)] == [0, 10, 20]


def test_a_price_cut_moves_bills_and_list_prices_together_and_back() -> None:
    before, after = scenario(30), SHOCKS["price-cut"](scenario(30))
    ratio = after.costs[:, 2] / before.costs[:, 2]
    assert np.allclose(ratio[10:20], 0.1 / 5.625)
    assert np.allclose(np.delete(ratio, range(10, 20)), 1.0)
    prices = [declared.models[MODELS[2]].input_price_per_m for _, declared in after.declarations]
    assert prices == pytest.approx([10, 10 * 0.1 / 5.625, 10])


def test_a_failing_model_earns_less_in_the_middle_and_nobody_is_told() -> None:
    before, after = scenario(300), SHOCKS["model-failure"](scenario(300))
    assert after.rewards[100:200, 1].mean() == pytest.approx(0.3, abs=0.03)
    assert np.array_equal(
        np.delete(after.rewards, range(100, 200), axis=0),
        np.delete(before.rewards, range(100, 200), axis=0),
    )
    assert len(after.declarations) == 1


def test_a_new_model_is_not_there_before_it_joins() -> None:
    after = SHOCKS["new-model"](scenario(30))
    assert [sorted(declared.models) for _, declared in after.declarations] == [
        ["a/small", "c/large"],
        sorted(MODELS),
    ]
    assert after.available[:, 1].tolist() == [False] * 10 + [True] * 20


def test_the_best_mix_of_two_models_meets_the_budget_exactly() -> None:
    fixed = [
        Yardstick("cheap", 0.8, 1.0),
        Yardstick("dear", 0.9, 3.0),
        Yardstick("useless", 0.1, 2.0),
    ]
    mix = best_mix(fixed, 2.0)
    assert mix is not None
    assert mix.reward == pytest.approx(0.85)
    assert mix.cost_usd == 2.0


def test_a_mix_spends_no_more_than_what_helps_and_there_is_none_below_the_cheapest() -> None:
    fixed = [Yardstick("good", 0.9, 1.0), Yardstick("dear and bad", 0.5, 3.0)]
    mix = best_mix(fixed, 2.0)
    assert mix is not None
    assert (mix.reward, mix.cost_usd) == (0.9, 1.0)
    assert best_mix(fixed, 0.5) is None


def test_yardsticks_are_ordered_as_they_must_be() -> None:
    by_name = {one.name: one for one in yardsticks(scenario())}
    oracle = by_name["oracle for each prompt, any cost"]
    assert all(one.reward <= oracle.reward for one in by_name.values())
    fixed = [one.reward for name, one in by_name.items() if name.startswith("always")]
    assert min(fixed) < by_name["random"].reward < max(fixed)


def test_a_model_that_joins_late_is_no_fixed_yardstick() -> None:
    names = {one.name for one in yardsticks(SHOCKS["new-model"](scenario()))}
    assert "always b/middle" not in names
    assert {"always a/small", "always c/large"} < names


def played(of: Scenario) -> Play:
    traffic = Traffic(of)
    play_out(traffic)
    count = len(of)
    state = LambdaUpdated(
        router_id="default",
        seq=count,
        lambda_t=0.1,
        budget_usd_per_request=0.001,
        spend_usd=sum(outcome.cost_usd for outcome in traffic.outcomes),
        committed_usd=0.0,
        in_flight=0,
        decided=count,
        settled=count,
        expired=0,
        rewards_applied=count,
        unmatched_cost_usd=0.0,
        config_offset=0,
        observed_at=NOON,
    )
    board = Board("default")
    for one in traffic.outcomes:
        known = {"router_id": "default", "request_id": one.decision.request_id}
        for event in (
            one.decision,
            CostReported.model_validate({**known, "cost_usd": one.cost_usd}),
            RewardObserved.model_validate({**known, "reward": one.reward, "source": "judge"}),
        ):
            board.observe(event, at=0.0)
    board.observe(state, at=0.0)
    return Play(
        picture=board.pareto(),
        outcomes=traffic.outcomes,
        refused={},
        dead_letters=[],
        state=state,
        alerts=[],
        seconds=(2.0, 2.5),
    )


def test_curves_have_one_point_for_each_decision() -> None:
    of = scenario(250)
    series = series_of(of, played(of))
    assert series.shares.shape == (250, 3)
    assert np.allclose(series.shares.sum(axis=1), 1.0)
    assert series.spend_per_budget[-1] == pytest.approx(of.costs[:, 1].mean() / 0.001)


def test_a_report_of_a_ramp_counts_what_the_router_answered_and_draws_its_share() -> None:
    of = scenario(40)
    play = played(of)
    outcomes = [
        replace(
            one,
            decision=one.decision.model_copy(
                update={"routed_by": ("holdout", "router")[n % 2], "routed_share": 0.5}
            ),
            reward=float(n % 2),
        )
        for n, one in enumerate(play.outcomes)
    ]
    report = Report(of, replace(play, outcomes=outcomes), "live", "none", proof="It saved.")
    assert (report.ours.reward, report.answer) == (1.0, "It saved.")
    first, *others = series_of(of, report.play).charts()
    assert first.series == {"routed": [0.5] * 40}
    # Dollars of both sides are no share of the router's budget.
    assert "Spend ÷ budget" not in {chart.title for chart in others}


def test_the_report_is_two_files_and_the_page_draws_the_curves(tmp_path: Path) -> None:
    of = SHOCKS["price-rise"](scenario(250))
    Report(of, played(of), "live", "price-rise").save(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"demo.html", "demo.json"}
    data = data_of((tmp_path / "demo.html").read_text())
    figures: dict[str, Any] = json.loads((tmp_path / "demo.json").read_text())
    assert figures["decided"] == 250
    spend = next(one for one in data["charts"] if one["title"] == "Spend ÷ budget")
    assert spend["at"][-1] == 250 and len(spend["at"]) <= 91
    assert spend["series"]["all so far"][-1] == pytest.approx(figures["cost_per_budget"])
    assert [mark["at"] for mark in data["marks"]] == [83.0, 166.0]
    assert "price rise" in data["marks"][0]["text"]


def test_an_alarm_stands_among_the_events_by_the_decisions_before_it(tmp_path: Path) -> None:
    of = scenario(20)
    play = played(of)
    alert = AlertRaised(
        router_id="default",
        kind=AlertKind.DRIFT,
        model=MODELS[1],
        signal="reward",
        direction="down",
        size=0.3,
        since=NOON,
        evidence={},
        observed_at=play.outcomes[11].decision.decided_at,
    )
    Report(of, replace(play, alerts=[alert]), "live", "none").save(tmp_path)
    ((mark),) = data_of((tmp_path / "demo.html").read_text())["marks"]
    before = [one for one in play.outcomes if one.decision.decided_at <= alert.observed_at]
    assert mark["at"] == len(before) and MODELS[1] in mark["text"]


def test_the_lead_over_the_best_mix_is_what_happened_on_the_same_requests() -> None:
    of = scenario()
    report = Report(of, played(of), "live", "none")
    mix = next(one for one in yardsticks(of) if one.name == BEST_MIX)
    assert report.lead is not None
    assert f"{report.ours.reward - mix.reward:+.3f} reward per request" in report.lead


def wheel_with_costs() -> Priors:
    """Return the shipped priors, with costs that depend on no prompt, so that nothing has to be
    encoded.
    """
    judged = load_rows("val")
    contexts = np.tile([0.0] * 25 + [1.0], (len(judged), 1))
    known = Observations(
        judged.models, contexts, np.full_like(judged.rewards, np.nan), judged.costs, judged.prompts
    )
    return replace(wheel_priors(), costs=fit_costs(known))


def test_the_papers_portfolio_has_its_prices_its_priors_and_1824_prompts() -> None:
    declared = paper_router(
        wheel_with_costs(), router_id="default", budget_usd=6.62e-4, profile="live"
    )
    listed = [
        (model.input_price_per_m, model.output_price_per_m) for model in declared.models.values()
    ]
    assert listed == [(0.1, 0.1), (0.5, 1.5), (1.25, 10.0)]
    means = [
        model.cost_prior.mean_usd
        for model in declared.models.values()
        if model.cost_prior is not None
    ]
    assert means == pytest.approx([2.9e-5, 5.0e-4, 1.5e-2], rel=0.02)
    assert all(model.prior is not None for model in declared.models.values())
    prompts = held_out_prompts(declared)
    assert (len(prompts), prompts.rewards.shape, prompts.costs.shape) == (
        1824,
        (1824, 3),
        (1824, 3),
    )
    # Table of the paper: always Mistral earns .923 at $5.3e-4.
    assert prompts.rewards[:, 1].mean() == pytest.approx(0.923, abs=5e-4)
    assert prompts.costs[:, 1].mean() == pytest.approx(5.3e-4, abs=5e-6)


def test_a_ramp_takes_over_from_the_dearest_model() -> None:
    declared = paper_router(
        wheel_with_costs(), router_id="default", budget_usd=6.62e-4, profile="live"
    )
    ramped = on_a_ramp(declared)
    assert (ramped.incumbent, ramped.ramp) == ("google/gemini-2.5-pro", SHARES)
    assert ramped.models == declared.models


def test_a_sample_keeps_prompts_with_their_outcomes() -> None:
    of = scenario(50)
    sample = of.sampled(20, rng=np.random.default_rng(2))
    for prompt, rewards in zip(sample.prompts, sample.rewards, strict=True):
        assert np.array_equal(rewards, of.rewards[int(prompt.split()[1])])
    with pytest.raises(ValueError, match="51 of 50"):
        of.sampled(51, rng=np.random.default_rng(2))


def test_the_result_is_told_in_money_beside_the_best_fixed_mix() -> None:
    of = scenario(250)
    report = Report(of, played(of), "live", "none", seed=4, in_flight=7)
    best = max(of.rewards.mean(0))
    assert report.result is not None
    assert report.result.startswith(f"{of.rewards[:, 1].mean() / best:.1%} of ")
    assert "The best fixed mix of models within the budget gets" in report.result
    figures = report.figures()
    assert (figures["seed"], figures["in_flight"], figures["result"]) == (4, 7, report.result)
    # What the page leads with is the dashboard's number, and said to be an estimate.
    assert figures["estimated"] == report.play.picture.sentence()
    # One interval for one difference: what happened has none.
    assert report.lead is not None and "±" not in report.result + report.lead
    assert "best fixed mix within the budget" in {row[0] for row in report.rows()}


def test_the_report_says_why_by_what_each_choice_was_worth() -> None:
    of = scenario(100)
    of.rewards[:, 0], of.rewards[:, 1] = 0.5, np.where(np.arange(100) < 40, 0.9, 0.55)
    play = played(of)
    outcomes = [
        replace(
            one, decision=one.decision.model_copy(update={"model": MODELS[int(one.position < 40)]})
        )
        for one in play.outcomes
    ]
    report = Report(of, replace(play, outcomes=outcomes), "live", "none")
    there = "on the prompts that it gave to middle, that earned +0.400 against small; "
    elsewhere = "on those that it gave to small, middle would have earned +0.050."
    assert report.why is not None and report.why.endswith(there + elsewhere)
    assert Report(of, play, "live", "none").why is None


def test_without_a_model_that_was_there_all_along_there_is_no_such_sentence() -> None:
    of = scenario(30)
    absent = replace(of, available=np.zeros_like(of.available))
    absent.available[:, 0] = np.arange(30) % 2 == 0
    absent.available[:, 1] = ~absent.available[:, 0]
    assert Report(absent, played(of), "live", "none").result is None


def test_a_demo_that_stays_says_what_its_prompts_are_read_with_and_ends_with_its_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "worker.log"
    log.write_text("no broker answers\n")
    out = Console(width=40, record=True, file=io.StringIO())
    with (
        subprocess.Popen(["false"]) as worker,
        pytest.raises(Failure, match=r"(?s)the worker ended with code 1.*no broker answers"),
    ):
        show._stay(
            load_settings(), show._environment(Path("runs/a demo"), "static"), worker, log, out
        )
    projection = tmp_path / "runs/a demo/projection"
    assert f"PB_PROJECTION_PATH='{projection}'\n" in out.export_text()
