"""`.ci/flaky` names the tests that failed and passed alone, and counts the runs of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

ONE, OTHER = "tests/a/test_x.py::test_one[a b]", "lab/tests/test_y.py::test_other"


def told(history: Path, *tests: str) -> str:
    """Run it, and return its sentence."""
    command = [sys.executable, str(ROOT / ".ci/flaky"), str(history), *tests]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_test_is_named_with_the_runs_in_which_it_did_the_same(tmp_path: Path) -> None:
    history = tmp_path / "kept" / "history.json"
    assert told(history, ONE).endswith(f"{ONE} (in 1 of 1 run: {history} had no history)")
    assert told(history) == "no test failed and then passed alone (the last 2 runs)"
    said = told(history, ONE, OTHER)
    assert f"{ONE} (in 2 of the last 3 runs), {OTHER} (in 1 of the last 3 runs)" in said


def test_the_last_twenty_runs_are_remembered(tmp_path: Path) -> None:
    history = tmp_path / "history.json"
    history.write_text(json.dumps({"runs": [[ONE]] * 20}))
    for _ in range(3):
        told(history)
    # Three runs without it and this one took the places of four.
    assert f"{ONE} (in 17 of the last 20 runs)" in told(history, ONE)
    assert len(json.loads(history.read_text())["runs"]) == 20


@pytest.mark.parametrize("damaged", ["", "[", "[]", '{"runs": 3}', '{"runs": [1]}', "\0"])
def test_a_history_that_cannot_be_read_is_said_and_begun_anew(damaged: str, tmp_path: Path) -> None:
    history = tmp_path / "history.json"
    history.write_text(damaged)
    assert "had no history" in told(history, ONE)
    assert "in 2 of the last 2 runs" in told(history, ONE)
