"""What a simulated policy is told of sessions, budgets of their runs, and attempts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from benchmarks.history import ROUTER, write_history
from router_state import registered
from router_state.attempts.following import chain_of
from schemas.requests import RequestSubmitted
from studies.history.encoded import Contexts
from studies.history.merge import Merge
from studies.history.records import JsonlHistory
from studies.history.skipped import Skipped
from studies.simulate.cases import SAID, Case, Cases
from studies.simulate.play import _request_fields as play_request
from studies.simulate.policies import EngineDecider
from studies.simulate.scenario import Scenario
from studies.simulate.study import study
from studies.simulate.track import Track
from studies.simulate.world import World

N, TURNS, USD = 400, 8, 5e-4
Line = dict[str, Any]
Edit = Callable[[Line], list[Line]]


def unused(*_: Any) -> Any:
    raise AssertionError("not needed here")


def edited(path: Path, edit: Edit) -> None:
    """Change the values of a file's lines, or have several in place of one."""
    found = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    lines = [line | {"value": value} for line in found for value in edit(line["value"])]
    numbered = [orjson.dumps(line | {"offset": n}) for n, line in enumerate(lines)]
    path.write_bytes(b"\n".join(numbered) + b"\n")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A history of two models."""
    rng = np.random.default_rng(7)
    models = {name: {"input_price_per_m": 0.5, "output_price_per_m": 1.5} for name in "ab"}
    write_history(
        tmp_path,
        declared={"models": models, "budget_usd_per_request": 1e-2, "dimensions": 3},
        models=list("ab"),
        contexts=np.column_stack([rng.normal(size=(N, 2)), np.ones(N)]),
        rewards=np.clip(rng.normal(0.7, 0.1, (N, 2)), 0, 1),
        costs=np.full((N, 2), USD),
        outcomes=False,
    )
    return tmp_path


def merged(folder: Path) -> Merge:
    return Merge(JsonlHistory(folder), 0, refused={}, skipped=Skipped(), router_id=ROUTER)


def played(folder: Path, policy: str, *events: Line) -> Track:
    scenario = Scenario.model_validate({"policies": [policy], "events": events})
    found = study(merged(folder), scenario, contexts=Contexts(unused), read_prior=unused)
    return found.runs[policy].track


def number_of(value: Line) -> int:
    return int(value["request_id"].removeprefix("r-")) - 1


@pytest.mark.parametrize("policy", ["declared", "live"])
def test_a_run_that_has_spent_its_budget_is_refused(recorded: Path, policy: str) -> None:
    edited(recorded / "routers-0.jsonl", lambda v: [v | {"sessions": {"when_spent": "refuse"}}])
    # A run pays for about half of its calls.
    said = {"session_budget_usd": USD * TURNS / 2}
    edited(
        recorded / "requests-0.jsonl",
        lambda v: [v | {"session_id": f"s{number_of(v) // TURNS}"} | said],
    )
    spent = played(recorded, policy).refused["session_spent"]
    assert N / 4 < spent < 3 * N / 4
    # Twice the traffic is other sessions, each with its own budget.
    twice = played(recorded, policy, {"kind": "traffic", "factor": 2}).refused["session_spent"]
    assert twice == pytest.approx(2 * spent, rel=0.2)


def test_without_sessions_nothing_is_refused(recorded: Path) -> None:
    assert not played(recorded, "declared").refused


def cases_of(folder: Path) -> list[Case]:
    cases = Cases(merged(folder), contexts=Contexts(unused), skipped=Skipped())
    return [case for case in cases if isinstance(case, Case)]


def test_a_capability_may_read_any_field_of_a_simulated_request(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def request_fields(wire: Any) -> dict[str, object]:
        read.append({name: getattr(wire, name) for name in RequestSubmitted.model_fields})
        return {}

    edited(
        recorded / "requests-0.jsonl",
        lambda v: [v | {"session_id": "s", "session_budget_usd": 0.5, "max_price_per_1k": 0.1}],
    )
    monkeypatch.setattr(registered, "request_fields", request_fields)
    played(recorded, "declared")
    assert len(read) == N
    assert {fields["session_budget_usd"] for fields in read} == {0.5}


def test_a_played_request_says_what_the_recorded_one_says(recorded: Path) -> None:
    names = {"router_id": ROUTER, "request_id": "r-1", "context": [0.5, 0.5, 1.0]}
    said = {
        **{"session_id": "s", "session_budget_usd": 0.5, "needs": {"tools": True}},
        **{"allowed_models": ["a"], "max_price_per_1k": 0.1, "input_tokens": 7},
    }
    seen = {"follows": "r-0", "verdicts": {}, "signals": {}, "verifiers": [], "metadata": {"k": 1}}
    # Whatever a request may say is played, or left out on purpose; `prompt` has become `context`.
    assert {*names, *said, *seen, "prompt"} - SAID == RequestSubmitted.model_fields.keys() - SAID
    edited(recorded / "requests-0.jsonl", lambda v: [v | said | seen | names])
    case = cases_of(recorded)[0]
    assert play_request(case, "r-1") == {**said, "context": names["context"]}
    assert play_request(case, "r-1+1")["session_id"] == "s+1"


def test_verdicts_and_second_calls_are_not_taken_for_the_decided_call(recorded: Path) -> None:
    before = cases_of(recorded)
    verifiers = {"verifiers": {"tests": {}}, "max_attempts": 2}
    edited(recorded / "routers-0.jsonl", lambda v: [v | verifiers])
    second = {"cost_usd": 1.0, "revision": 1, "attempt": 1}
    edited(
        recorded / "costs-0.jsonl",
        lambda v: [v, v | second] if number_of(v) % 2 else [v],
    )

    def verdict(value: Line) -> Line:
        named = {name: value[name] for name in ("router_id", "request_id")}
        return named | {"verifier": "tests", "verdict": 0.0, "attempt": 0}

    edited(recorded / "rewards-0.jsonl", lambda v: [verdict(v), v])
    after = cases_of(recorded)
    assert [case.cost_usd for case in after] == [case.cost_usd for case in before]
    for was, now in zip(before, after, strict=True):
        # A reward that names no attempt is of the last call.
        assert now.reward == (None if number_of({"request_id": now.request_id}) % 2 else was.reward)


def test_a_router_with_verifiers_is_played_with_one_call_a_request(recorded: Path) -> None:
    plain = played(recorded, "declared").total
    verifiers = {"verifiers": {"tests": {"usd": 1e-6}}, "max_attempts": 2}
    edited(recorded / "routers-0.jsonl", lambda v: [v | verifiers])
    found = played(recorded, "declared").total
    assert (found.calls, found.cost_usd) == (plain.calls, plain.cost_usd)


def following(recorded: Path, *, back: int = 1, **seen: Any) -> None:
    """Let odd requests follow one so far before them, and say what was seen of its answer."""

    def edit(value: Line) -> list[Line]:
        number = number_of(value)
        follows = f"r-{number + 1 - back}"
        return [value | {"follows": follows, **seen} if number % 2 and number >= back else value]

    edited(recorded / "requests-0.jsonl", edit)


def test_a_request_that_follows_another_one_is_played_with_a_model_that_was_not_tried(
    recorded: Path,
) -> None:
    def calls(policy: str, *events: Line) -> dict[str, int]:
        track = played(recorded, policy, *events)
        assert not track.refused
        return track.total.calls

    alone = calls("declared")
    following(recorded, signals={"tests_passed": 0.0})
    for policy in ("declared", "live", "paper"):
        # Of two models each pair of requests has both.
        assert calls(policy) == {"a": N / 2, "b": N / 2}
    assert alone != {"a": N / 2, "b": N / 2}
    # A copy follows a copy.
    assert calls("declared", {"kind": "traffic", "factor": 2}) == {"a": N, "b": N}


@pytest.mark.parametrize("policy", ["declared", "live", "paper"])
def test_what_was_seen_of_an_answer_counts_where_the_same_model_gave_it(
    recorded: Path, policy: str
) -> None:
    verifiers = {"verifiers": {"tests": {"usd": 1e-6}}, "max_attempts": 2}
    edited(recorded / "routers-0.jsonl", lambda v: [v | verifiers])
    following(recorded, verdicts={"tests": 0.0})
    scenario = Scenario.model_validate({"policies": [policy]})
    decider = EngineDecider(scenario.policies[0], read_prior=unused)
    world = World(scenario, requests=N, index_of={}, models={"a", "b"}, declared={"a", "b"})
    told: dict[bool, set[int]] = {True: set(), False: set()}
    for case in Cases(merged(recorded), contexts=Contexts(unused), skipped=Skipped()):
        if not isinstance(case, Case):
            assert case.router is not None
            decider.declare(world.router(case.router, 0), at=0.0)
            continue
        model, _ = decider.decide(case.request_id, case, at=case.at)
        if case.follows is None:
            same, first = model == case.model, model
        else:
            assert case.followed is not None and model != first
            chain = chain_of(decider.engine.records[case.request_id], "attempts")
            assert chain is not None and chain.tried == (first,)
            told[same].add(chain.count)
    # The other profile has no verifiers, so it knows no verdicts.
    assert told == {True: {policy != "paper"}, False: {0}}


def test_whose_answer_was_seen_is_not_known_where_a_plan_went_on(recorded: Path) -> None:
    late = 41  # more than a bill is late
    following(recorded, back=late, signals={"severity": 1.0})
    second = {"cost_usd": 1.0, "revision": 1, "attempt": 1}
    edited(
        recorded / "costs-0.jsonl",
        lambda v: [v | second] if number_of(v) % 4 == 0 else [v],
    )
    followed = {n: case for n, case in enumerate(cases_of(recorded)) if case.follows is not None}
    assert len(followed) == (N - late) // 2 + 1
    for number, case in followed.items():
        assert (case.followed is None) == ((number - late) % 4 == 0)
