"""`pbstream replay` over an export: parts of it, holes in it, questions that have no meaning."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest
from click.testing import CliRunner, Result

from benchmarks.history import ROUTER, write_history
from commands.cli import main
from tests.drawing.test_drawing import data_of

MODELS = {"small": (0.1, 0.1), "large": (1.25, 10.0)}
N = 400


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, folder = np.random.default_rng(3), tmp_path_factory.mktemp("history")
    write_history(
        folder,
        declared={
            "models": {
                name: {"input_price_per_m": p, "output_price_per_m": q}
                for name, (p, q) in MODELS.items()
            },
            "budget_usd_per_request": 6e-4,
            "dimensions": 4,
        },
        models=tuple(MODELS),
        contexts=np.column_stack([rng.normal(size=(N, 3)), np.ones(N)]),
        rewards=np.clip(np.array([0.78, 0.94]) + rng.normal(0, 0.05, (N, 2)), 0, 1),
        costs=np.array([2.9e-5, 1.5e-2]) * rng.lognormal(0, 0.4, (N, 2)),
    )
    return folder


@pytest.fixture
def history(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "history"))


def replay(history: Path, *options: str, router: str = ROUTER) -> Result:
    return CliRunner().invoke(
        main,
        ["replay", "--from", str(history), "--router", router, *options],
        catch_exceptions=False,
    )


def edit(history: Path, topic: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = history / f"{topic}-0.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def changed(line: bytes, **fields: object) -> bytes:
    body = orjson.loads(line)
    body["value"].update(fields)
    return orjson.dumps(body) + b"\n"


@pytest.mark.parametrize(
    ("part", "compared"),
    [
        ((), N),
        (("--offsets", "100:199"), 100),
        (("--since", "2026-01-01T00:00:10.001Z"), N - 200),
        (("--until", "2026-01-01T00:00:10.001Z"), 200),
    ],
)
def test_verify_compares_the_part_that_was_asked_for(
    history: Path, part: tuple[str, ...], compared: int
) -> None:
    result = replay(history, "--verify", *part)
    assert result.exit_code == 0
    assert (
        f"{compared} decisions made again: {compared} equal, {compared} of them to the bit."
        in result.output
    )


def test_a_scenario_over_a_part_takes_its_requests(history: Path) -> None:
    result = replay(history, "--policy", "live", "--offsets", "100:299", "--json")
    assert orjson.loads(result.output)["requests"] == 200


@pytest.mark.parametrize(
    ("policies", "names"),
    [
        # The winner is one of those that decide alike, then another policy.
        ("[declared, live]", ["declared, live"]),
        ("[{name: cheap, model: small}, large, small]", ["cheap, small", "large"]),
    ],
)
def test_policies_that_decide_alike_are_said_to_and_share_a_line(
    history: Path, tmp_path: Path, policies: str, names: list[str]
) -> None:
    scenario, report = tmp_path / "alike.yaml", tmp_path / "alike.html"
    anything = "{kind: budget, usd_per_request: 1}"
    scenario.write_text(f"policies: {policies}\nevents: [{anything}]\n")
    result = replay(history, "--scenario", str(scenario), "--report", str(report))
    assert result.exit_code == 0, result.output
    data = data_of(report.read_text())
    assert data["names"] == names
    assert [*data["charts"][0]["series"]] == names
    assert len([one for one in data["charts"] if one["title"].startswith("λ_t of ")]) <= len(names)
    for said in (result.output, report.read_text()):
        assert f"{names[0]} decided alike." in said
        assert f"{names[-1]} earned 0." in said
        assert said.count("decided alike") == 1


def test_what_is_missing_or_damaged_is_counted_with_its_place(history: Path) -> None:
    edit(history, "costs", lambda lines: lines[10:20] + lines[25:120])
    edit(history, "rewards", lambda lines: lines[:120])
    edit(history, "requests", lambda lines: lines[3:120])
    edit(
        history,
        "routes",
        lambda lines: [
            *lines[:100],
            changed(lines[100], decided_at="2025-01-01T00:00:00Z"),
            *lines[101:120],
        ],
    )
    result = replay(history, "--policy", "recorded")
    assert result.exit_code == 0
    for said in (
        "10 × costs-0: offsets are missing, as retention or a range leaves it (first: 0 to 9)",
        "5 × costs-0: offsets are missing in between (first: 20 to 24)",
        "3 × requests-0: offsets are missing, as retention or a range leaves it (first: 0 to 2)",
        "3 × decisions whose request is gone (first: routes-0 offset 0)",
        "1 × clock jumps back; taken as standing still (first: decision 101)",
    ):
        assert said in result.output


def test_records_of_other_versions_are_read_as_far_as_they_go(history: Path) -> None:
    def older(line: bytes) -> bytes:
        body = orjson.loads(line)
        for candidate in body["value"]["candidates"]:
            del candidate["expected_cost_usd"]
        return orjson.dumps(body) + b"\n"

    edit(
        history,
        "routes",
        lambda lines: [
            *map(older, lines[:50]),
            *(changed(line, new_field={"a": 1}) for line in lines[50:]),
        ],
    )
    result = replay(history, "--verify")
    assert result.exit_code == 0 and f"{N} equal" in result.output


def test_unknown_models_of_a_scenario_are_all_named_and_nothing_is_played(
    history: Path, tmp_path: Path
) -> None:
    scenario = tmp_path / "unknown.yaml"
    events = (
        "[{kind: outage, model: nope}, {kind: price, model: nada, factor: 2}, {kind: budget, "
        "usd_per_request: 1}]"
    )
    scenario.write_text(f"policies: [live, gpt-9]\nevents: {events}\n")
    result = replay(history, "--scenario", str(scenario))
    assert result.exit_code == 1
    for said in (
        "'nope' is unknown",
        "'nada' is unknown",
        "'gpt-9' is unknown",
        "3 of 5 events and policies",
        "large, small",
    ):
        assert said in result.output


@pytest.mark.parametrize("question", ["--verify", "--policy=live"])
def test_an_unknown_router_is_answered_with_those_that_there_are(
    history: Path, question: str
) -> None:
    result = replay(history, question, router="nobody")
    assert result.exit_code == 1
    assert f"no decision of router nobody; --router names one of: {ROUTER}" in result.output


@pytest.mark.parametrize("router", [ROUTER, "nobody"])
def test_a_router_that_has_decided_nothing_yet_is_not_named_as_its_own_remedy(
    history: Path, router: str
) -> None:
    result = replay(history, "--policy=live", "--since", "2100-01-01", router=router)
    assert result.exit_code == 1
    assert ("--router names one of" in result.output) == (router == "nobody")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--verify", "--export", "x"), "choose one"),
        (("--verify", "--policy", "live"), "takes the history as it is"),
        (("--into", "test.", "--report", "x.html"), "the workers decide"),
        (("--export", "x", "--offsets", "1:2"), "goes by time"),
        (("--into", "two words"), "not a prefix"),
        (("--report", "nowhere/x.html"), "folder nowhere does not exist"),
    ],
)
def test_options_that_have_no_meaning_together_are_refused(
    history: Path, options: tuple[str, ...], problem: str
) -> None:
    result = replay(history, *options)
    assert result.exit_code == 2 and problem in result.output


def test_an_export_to_parquet_verifies_as_well_and_is_not_overwritten(
    history: Path, tmp_path: Path
) -> None:
    made = tmp_path / "parquet"
    written = replay(history, "--export", str(made), "--format", "parquet")
    assert written.exit_code == 0 and "1,601 records written" in written.output
    assert f"{N} of them to the bit" in replay(made, "--verify").output
    assert "choose another folder" in replay(made, "--export", str(made)).output


def test_a_line_that_cannot_be_read_is_named(history: Path) -> None:
    edit(history, "costs", lambda lines: [*lines[:7], b'{"offset":7,\n', *lines[8:]])
    result = replay(history, "--verify")
    assert result.exit_code == 1
    assert "costs-0.jsonl, line 8" in result.output and "mend that line" in result.output


def test_prompts_that_become_other_contexts_here_name_the_setting(history: Path) -> None:
    def with_a_prompt(lines: list[bytes]) -> list[bytes]:
        return [
            changed(line, context=None, prompt="Why is the sky blue?") if at == 0 else line
            for at, line in enumerate(lines)
        ]

    edit(history, "requests", with_a_prompt)
    result = replay(history, "--verify")
    assert result.exit_code == 1
    assert "PB_PROJECTION_PATH" in result.output


def test_an_export_of_nothing_says_so(history: Path, tmp_path: Path) -> None:
    for path in history.glob("*.jsonl"):
        path.write_bytes(b"")
    result = replay(history, "--export", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "nothing to export" in result.output
    asked = replay(history, "--policy", "live")
    assert asked.exit_code == 1 and "it declares no router. PB_PREFIX" in asked.output
