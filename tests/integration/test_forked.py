"""Forked workers are processes as any: in a session of their own, killed with their parent."""

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.integration import forked
from tests.integration.forked import Forked, inherited, start
from tests.integration.service import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no worker is forked")


def test_a_fork_has_nothing_of_its_siblings_or_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "MODULES", ("forked_probe",))
    environment = inherited() | {"PB_PREFIX": "own."}
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    for log in logs:
        process = start(["tests.integration.forked_probe", "{}"], log=log, env=environment)
        assert isinstance(process, Forked)
        assert process.wait(60) == process.poll() == 3
        process.kill()  # as one of `Popen` that has ended
    one, two = (json.loads(log.read_text()) for log in logs)
    assert not set(one.pop("drawn")) & set(two.pop("drawn"))
    assert (
        one
        == two
        == {
            "environment": environment,
            "arguments": ["{}"],
            "folder": str(ROOT),
            "leads_its_session": True,
            "dies_with_its_parent_by": signal.SIGKILL,
            "input": "",
        }
    )


def test_what_imports_may_read_is_given_to_a_process_of_its_own(tmp_path: Path) -> None:
    command = ["tests.integration.service_worker"]
    environment = inherited() | {"TZ": "Asia/Tokyo", "PB_BOOTSTRAP": "no address"}
    process = start(command, log=tmp_path / "log", env=environment)
    assert not isinstance(process, Forked)
    process.kill()
    process.wait()
