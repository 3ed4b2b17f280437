"""`pbstream fit --from-history`: priors out of a router's own decisions, bills and rewards."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from agents.members.kin_notes import brought_of
from benchmarks.history import ROUTER, write_history
from benchmarks.played import Played
from commands.cli import main
from router_state.config import LIVE, ModelConfig, Price, RouterConfig
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import Report
from schemas.budgets import PeriodBudget, TrafficExpected
from schemas.event import decode
from schemas.families import FamilyEstimated
from schemas.routers import RouterDeclared
from streams.priors.fitted_priors import load_priors
from studies.history.happened import Declared
from studies.simulate.cases import Case
from studies.simulate.observed import NothingObserved, observe
from studies.simulate.usual_week import TrafficSeen

N, D = 300, 4
MODELS = ("small", "large")
PRICES = {"small": (0.1, 0.1), "large": (1.0, 3.0)}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    contexts = np.column_stack([rng.normal(size=(N, D - 1)), np.ones(N)])
    rewards = np.clip(
        np.array([0.7, 0.8]) + 0.1 * contexts[:, :1] * np.array([-1.0, 1.0]), 0.0, 1.0
    )
    costs = np.array([2e-5, 1e-3]) * np.exp(0.3 * contexts[:, 1:2])
    folder = tmp_path_factory.mktemp("history") / "export"
    models = {
        name: {"input_price_per_m": i, "output_price_per_m": o} for name, (i, o) in PRICES.items()
    }
    declared: dict[str, Any] = {
        "models": models,
        "budget_usd_per_request": 4e-4,
        "dimensions": D,
        "epsilon": 0.2,
    }
    write_history(
        folder,
        declared=declared,
        models=MODELS,
        contexts=contexts,
        rewards=rewards,
        costs=costs,
        outcomes=False,
    )
    return folder


def fitted(history: Path, out: Path, *more: str) -> Any:
    arguments = [
        "fit",
        "--from-history",
        "--router",
        ROUTER,
        "--from",
        str(history),
        str(out),
        "--json",
        *more,
    ]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_rewards_and_costs_by_prompt_are_found_again(history: Path, tmp_path: Path) -> None:
    told = fitted(history, tmp_path / "out", "--explain")
    assert sum(told["rewards"].values()) == N and told["dimensions"] == D
    priors = load_priors(tmp_path / "out")
    k = priors.models.index("large")
    assert np.linalg.solve(priors.A[k], priors.b[k])[0] == pytest.approx(0.1, abs=0.03)
    assert priors.costs is not None and priors.costs.means[
        priors.costs.models.index("small")
    ] == pytest.approx(2e-5, rel=0.2)
    assert told["worth"]["complete"] is False and len(told["worth"]["frontier"]) > 5
    assert "What these priors are worth" in (tmp_path / "out" / "worth.html").read_text()


def test_what_a_family_knows_is_fitted_to_its_members_and_begins_another(
    history: Path, tmp_path: Path
) -> None:
    file = tmp_path / "support.json"
    told = fitted(history, file, "--family", "support", "--member", ROUTER)
    assert told["members"] == [ROUTER] and ROUTER not in file.read_text()
    known = decode(FamilyEstimated, file.read_bytes())
    assert {one.model for one in known.models} == set(MODELS)
    owner = FamilyOwner("sales", lambda piece: None)
    owner.bring(brought_of(known))
    owner.take_report(Report("sales", "new", 1, 0, D, "", names=MODELS))
    models = {name: ModelConfig(Price(0.1, 0.4)) for name in MODELS}
    joined = {"family": FamilyDeclared("sales")}
    newcomer = Played.start(
        RouterConfig(models, None, D, "live", LIVE, capabilities=joined, offset=1)
    )
    for prior in owner.priors_for("new"):
        newcomer.play(prior, 0.0)
    x = np.eye(D)[-1]
    rewards = {arm.name: arm.rewards.predict(x) for arm in newcomer.state.arms}
    # One member does not say how alike members are, so its difference of 0.1 counts for a part.
    assert 0.02 < rewards["large"] - rewards["small"] < 0.1
    list_price = {"small": 1e-4, "large": 2e-3}
    costs = {"small": 2e-5, "large": 1e-3}
    for one in known.models:
        ratio = np.log(costs[one.model] / list_price[one.model])
        assert one.bills is not None and one.bills.expected == pytest.approx(ratio, abs=0.3)


def test_a_family_that_no_router_of_the_history_names_is_an_error(
    history: Path, tmp_path: Path
) -> None:
    words = ["fit", "--from-history", "--family", "support", "--from", str(history)]
    done = CliRunner().invoke(main, [*words, str(tmp_path / "out.json")])
    assert done.exit_code == 1 and "--member" in done.output


def test_an_unknown_router_is_an_error_that_names_the_others(history: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main,
        [
            "fit",
            "--from-history",
            "--router",
            "nobody",
            "--from",
            str(history),
            str(tmp_path / "out"),
        ],
    )
    assert done.exit_code == 1 and ROUTER in done.output and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [["only-one"], ["--from-history", "a", "b"], ["a", "b", "--from", "."], []],
    ids=["one", "two", "from", "none"],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["fit", *arguments]).exit_code == 2


def test_cases_without_feedback_are_nothing() -> None:
    x = np.array([0.0, 1.0])
    with pytest.raises(NothingObserved):
        observe([Case(0, "r", x, 0.0, None, None, {}, "small", 1.0)])
    other = Case(0, "q", np.ones(5), 0.0, None, None, {}, "small", 1.0, cost_usd=9.0)
    found = observe([other, Case(0, "r", x, 0.0, None, None, {}, "small", 1.0, cost_usd=1e-3)])
    assert len(found) == 1 and found.costs[0, 0] == 1e-3 and np.isnan(found.rewards[0, 0])


def test_the_traffic_of_a_history_is_what_a_declaration_takes(tmp_path: Path) -> None:
    seen = TrafficSeen()
    begin = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    declared = RouterDeclared(
        router_id="a", models={}, budget=PeriodBudget(usd=1.0, per="day", timezone="Asia/Tokyo")
    )
    # From nine to noon by Tokyo's clock.
    hours = [begin + day * 86_400.0 + hour * 3600.0 for day in range(21) for hour in (0, 1, 2)]
    cases: list[Any] = [Declared("a", 0, begin, declared)]
    cases += [
        Case(i, str(i), np.ones(1), at + k, None, None, {}, "m", 1.0)
        for i, (at, k) in enumerate(product(hours, range(0, 3600, 60)))
    ]
    assert list(seen.through(cases)) == cases
    path = seen.write(tmp_path)
    assert path is not None
    traffic = TrafficExpected.model_validate_json(path.read_text())
    assert traffic.hours is not None and traffic.per_week is not None
    assert traffic.per_week == pytest.approx(7 * 180, rel=0.06)
    assert sum(traffic.hours[k] for k in range(168) if k % 24 in (9, 10, 11)) > 0.9 * 168
    short = TrafficSeen()
    assert len(list(short.through(cases[:100]))) == 100
    assert short.write(tmp_path / "no") is None
