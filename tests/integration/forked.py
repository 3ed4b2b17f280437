"""Start the tests' workers and gateways as forks of one process that has imported what a worker
imports: half of a short life's CPU.

Run as a module it is that process: no event loop, no threads, nothing but imports, a line of JSON a
question. A fork replaces the environment, begins a session of its own, dies with its parent, and
runs its module as `python -m` does; only the seed of hashes is the same in all of them.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from signal import SIGKILL, SIGTERM
from threading import Lock
from typing import Any

from commands.broker.child import spawn

ROOT = Path(__file__).parents[2]
MODULES = ("service_worker", "counting_worker", "slow_encoder_worker", "commands.cli")
"""What is forked. `test_watched.py`, `test_crew.py`, `test_ownership.py` and `tests/release` start
`pbstream worker` as a program of its own, by another name of its module."""
IMPORTED = (
    "streams.service.lifetime",
    "streams.service.worker",
    "commands.cli.service",
    "uvicorn",
    # Faust imports them by their names while an app starts.
    "faust.app.router",
    "faust.assignor.leader_assignor",
    "faust.assignor.partition_assignor",
    "faust.worker",
)
READ_LATE = ("PB_", "PYTEST_", "SLOW_ENCODER_")
"""What variables begin with that nothing reads while it is imported."""
STARTED_WITH = dict(os.environ)
"""The environment before libraries under test added what is their own (LiteLLM, torch)."""
LOOK_EVERY = 0.02
"""Seconds between two looks at whether a process has ended."""
PR_SET_PDEATHSIG = 1


def start(
    command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path = ROOT
) -> subprocess.Popen[bytes] | Forked:
    """Start a module with its arguments, its output in `log`: forked where that shows nothing else
    than a start of its own would.
    """
    module = command[0].removeprefix("tests.integration.")
    if sys.platform == "linux" and cwd == ROOT and module in MODULES:
        server = _server()
        if server.suits(env):
            log.touch()  # it can be read at once
            return Forked(server, server.ask([*command], str(log), dict(env)))
    return spawn([sys.executable, "-m", *command], log=log, env=env, cwd=cwd)


def inherited() -> dict[str, str]:
    """Return what a worker has of the environment that this process was started with."""
    own = ("PB_", "KAFKA_", "PYTHONDONTWRITE")
    return {name: value for name, value in STARTED_WITH.items() if not name.startswith(own)}


class Forked:
    """A forked process, with what tests use of `subprocess.Popen`."""

    def __init__(self, server: Server, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it is there."""
        if self.returncode is None:
            self.returncode = self._server.ask(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code.

        Raises:
            subprocess.TimeoutExpired: after so many seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(LOOK_EVERY)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it is there."""
        # Its number is nobody else's until it is polled for.
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(SIGTERM)


class Server:
    """The process that forks; it ends with this one, as its input does, and its forks with it."""

    def __init__(self) -> None:
        self._environment = inherited()
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            cwd=ROOT,
            start_new_session=True,
        )
        atexit.register(self._process.communicate)

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork may have this environment: what is read by imports is the same."""
        different = dict(environment.items() ^ self._environment.items())
        return all(name.startswith(READ_LATE) for name in different)

    def ask(self, *question: Any) -> Any:
        """Return the answer: to a process id its exit code or None, else a process id."""
        into, out = self._process.stdin, self._process.stdout
        assert into is not None and out is not None
        with self._lock:
            into.write(json.dumps(question).encode() + b"\n")
            into.flush()
            answer = out.readline()
        assert answer, "the process that forks has ended"
        return json.loads(answer)


@cache
def _server() -> Server:
    return Server()


def _serve() -> list[str] | None:
    """Answer until the input ends; in each fork, return its command."""
    for line in sys.stdin:
        match json.loads(line):
            case [int(pid)]:
                ended, status = os.waitpid(pid, os.WNOHANG)
                answer = os.waitstatus_to_exitcode(status) if ended else None
            case [command, log, environment]:
                parent = os.getpid()
                answer = os.fork()
                if not answer:
                    _begin(parent, log, environment)
                    return list(command)
        print(json.dumps(answer), flush=True)
    return None


def _begin(parent: int, log: str, environment: dict[str, str]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(SIGKILL))
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.setsid()
    with Path(os.devnull).open("rb") as nothing, Path(log).open("ab") as output:
        for file, number in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    if (run := _serve()) is not None:
        sys.argv = run
        runpy.run_module(run[0], run_name="__main__", alter_sys=True)
