"""Forked workers are processes as any: in a session of their own, killed with their parent."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.broker.wire import free_ports
from tests.integration import forked
from tests.integration.forked import Forked, inherited, programs, start
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


def pbstream(*words: str, **given: Any) -> subprocess.CompletedProcess[str]:
    """Run the program `pbstream` as a test does."""
    command = [str(programs() / "pbstream"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **given)


def test_the_program_has_the_folder_the_files_and_the_environment_of_who_runs_it(
    tmp_path: Path,
) -> None:
    payload = (ROOT / "tests/doors/integrations/golden/litellm.ndjson").read_text()
    (tmp_path / "calls.ndjson").write_text(payload)
    named = pbstream("convert", "--from", "litellm", "calls.ndjson", cwd=tmp_path)
    piped = pbstream("convert", "--from", "litellm", input=payload)
    assert named.stdout == piped.stdout != "" and named.returncode == piped.returncode == 0
    wrong = pbstream("topics", "check", env={**os.environ, "PB_PARTITIONS": "many"})
    assert (wrong.returncode, wrong.stdout) == (2, "") and "PB_PARTITIONS=8" in wrong.stderr


def test_the_program_takes_signals_for_its_fork_which_ends_with_it() -> None:
    (port,) = free_ports(1)
    away = {**os.environ, "PB_BOOTSTRAP": f"127.0.0.1:{port}", "PB_GATEWAY_PORT": "0"}
    command = [str(programs() / "pbstream"), "gateway"]
    for number, code in ((signal.SIGTERM, (0, 1)), (signal.SIGKILL, (-signal.SIGKILL,))):
        with subprocess.Popen(command, env=away, stderr=subprocess.PIPE) as running:
            assert running.stderr is not None
            running.stderr.readline()
            running.send_signal(number)
            assert running.wait(60) in code
            running.stderr.read()  # until the fork has ended too


def test_what_imports_may_read_is_given_to_a_process_of_its_own(tmp_path: Path) -> None:
    command = ["tests.integration.service_worker"]
    environment = inherited() | {"TZ": "Asia/Tokyo", "PB_BOOTSTRAP": "no address"}
    process = start(command, log=tmp_path / "log", env=environment)
    assert not isinstance(process, Forked)
    process.kill()
    process.wait()
