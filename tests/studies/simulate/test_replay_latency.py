"""Scenarios of calls' times: another target, and models that become slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from pydantic import ValidationError

from benchmarks.history import ROUTER, write_history
from schemas.latency import FirstTokenPriced, LatencyTarget
from schemas.routers import RouterDeclared
from studies.history.encoded import Contexts
from studies.history.merge import Merge
from studies.history.records import JsonlHistory
from studies.history.skipped import Skipped
from studies.simulate.figures import figures, phases_csv
from studies.simulate.scenario import Scenario
from studies.simulate.study import Study, study
from studies.simulate.study_page import render
from studies.simulate.times import bin_of, quantile
from studies.simulate.world import World

N = 1500
SECONDS = {"quick": 0.8, "slow": 4.0}


def unused(*_: Any) -> Any:
    raise AssertionError("not needed here")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> JsonlHistory:
    """A history in which the better model takes five times as long; bills say so."""
    rng, folder = np.random.default_rng(5), tmp_path_factory.mktemp("timed")
    models = {name: {"input_price_per_m": 0.5, "output_price_per_m": 1.5} for name in SECONDS}
    write_history(
        folder,
        declared={
            "models": models,
            "budget_usd_per_request": 1e-2,
            "dimensions": 3,
            "epsilon": 0.3,
        },
        models=list(SECONDS),
        contexts=np.column_stack([rng.normal(size=(N, 2)), np.ones(N)]),
        rewards=np.clip(np.array([0.6, 0.9]) + rng.normal(0, 0.05, (N, 2)), 0, 1),
        costs=np.full((N, 2), 5e-4),
        outcomes=False,
    )
    routes = [one["value"] for one in lines_of(folder / "routes-0.jsonl")]
    called = {route["request_id"]: route["model"] for route in routes}
    lines = lines_of(folder / "costs-0.jsonl")
    for line in lines:
        took = 1e3 * SECONDS[called[line["value"]["request_id"]]] * rng.lognormal(0, 0.2)
        line["value"] |= {"latency_ms": took, "first_token_ms": took / 10}
    (folder / "costs-0.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    return JsonlHistory(folder)


def played(history: JsonlHistory, *events: dict[str, Any]) -> Study:
    happened = Merge(history, 0, refused={}, skipped=Skipped(), router_id=ROUTER)
    scenario = Scenario.model_validate({"policies": ["declared", "recorded"], "events": events})
    return study(happened, scenario, contexts=Contexts(unused), read_prior=unused)


def test_a_target_moves_calls_to_the_model_that_keeps_it(recorded: JsonlHistory) -> None:
    without, within = played(recorded), played(recorded, {"kind": "latency", "p95_ms": 2000})
    before = without.runs["declared"].track.total
    after = within.runs["declared"].track.points()
    last = list(after)[-1][1]
    assert before.mean_seconds == pytest.approx(4.0, rel=0.25)
    assert last.calls["quick"] > 0.85 * last.requests
    assert last.mean_seconds is not None
    assert last.mean_seconds < 1.5
    # What history chose keeps its own times.
    kept = [one.runs["recorded"].track.total.mean_seconds for one in (without, within)]
    assert kept[0] == kept[1]


def test_a_guessed_time_is_of_the_model_and_has_the_scatter_of_the_call(
    recorded: JsonlHistory,
) -> None:
    happened = Merge(recorded, 0, refused={}, skipped=Skipped(), router_id=ROUTER)
    scenario = Scenario.model_validate({"policies": ["quick", "slow"]})
    found = study(happened, scenario, contexts=Contexts(unused), read_prior=unused)
    for name, seconds in SECONDS.items():
        total = found.runs[name].track.total
        assert total.mean_seconds == pytest.approx(seconds * np.exp(0.02), rel=0.05)
        assert total.p95_seconds == pytest.approx(seconds * np.exp(0.2 * 1.645), rel=0.08)


def test_a_model_becomes_slower(recorded: JsonlHistory) -> None:
    events = {"kind": "slower", "model": "slow", "factor": 3, "at": "50%"}
    phases = played(recorded, events).runs["declared"].track.phases
    assert phases[0].mean_seconds is not None
    assert phases[1].mean_seconds is not None
    assert phases[1].mean_seconds > 2.0 * phases[0].mean_seconds


def test_the_report_and_its_tables_say_how_long_calls_take(recorded: JsonlHistory) -> None:
    found = played(recorded, {"kind": "latency", "p95_ms": 2000, "at": "50%"})
    assert "p95 s" in render(found)
    assert "p95 ≤ 2 s" in render(found)
    assert figures(found)["policies"]["recorded"]["total"]["p95_ms"] > 2000
    assert "p95_ms" in phases_csv(found).splitlines()[0]


def test_events_set_the_declaration_while_they_last() -> None:
    base = RouterDeclared.model_validate(
        {
            "router_id": "r",
            "models": {"quick": {"input_price_per_m": 1, "output_price_per_m": 1}},
            "budget_usd_per_request": 1e-3,
            "latency_target": {"mean_ms": 900},
        }
    )
    events = [
        {"kind": "latency", "at": 0, "until": 10},
        {"kind": "latency", "p95_ms": 3000, "of": "first_token", "at": 10, "until": 20},
        {"kind": "latency", "usd_per_second": 0.01, "of": "first_token", "at": 20, "until": 30},
    ]
    world = World(
        Scenario.model_validate({"events": events}),
        requests=50,
        index_of={},
        models={"quick"},
        declared={"quick"},
    )
    found = [world.router(base, index) for index in (5, 15, 25, 35)]
    assert [one.latency_target for one in found] == [
        None,
        LatencyTarget(p95_ms=3000, of="first_token"),
        None,
        LatencyTarget(mean_ms=900),
    ]
    assert found[2].usd_per_second == FirstTokenPriced(first_token=0.01)


@pytest.mark.parametrize(
    "event",
    [
        {"p95_ms": 3000, "mean_ms": 2000},
        {"p95_ms": 0},
        {"p95_ms": -1},
        {"mean_ms": float("nan")},
        {"of": "half"},
        {"usd_per_second": 1e9},
    ],
)
def test_a_target_that_says_two_things_or_nothing_possible_is_refused(
    event: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        Scenario.model_validate({"events": [{"kind": "latency", **event}]})


def test_a_quantile_is_right_to_its_bin() -> None:
    rng, bins = np.random.default_rng(0), dict[int, int]()
    values = rng.lognormal(0, 1, 5000)
    for value in values.tolist():
        bins[bin_of(value)] = bins.get(bin_of(value), 0) + 1
    assert quantile(bins, 0.95) == pytest.approx(float(np.quantile(values, 0.95)), rel=0.05)
    assert quantile({}, 0.95) is None
