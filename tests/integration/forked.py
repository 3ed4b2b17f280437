"""Start the tests' workers, gateways and programs as forks of one process that has imported what
they import: half of a short life's CPU.

`forking.py` is that process. A fork replaces the environment, begins a session of its own, dies
with its parent, and runs its module as `python -m` does; only the seed of hashes is the same in all
of them.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from signal import SIGKILL, SIGTERM
from threading import Lock
from typing import Any

from commands.broker.child import spawn

ROOT = Path(__file__).parents[2]
MODULES = (
    *("service_worker", "counting_worker", "slow_encoder_worker", "crashing_worker"),
    *("faulty_worker", "commands.cli"),
)
"""What is forked. `test_watched.py`, `test_crew.py` and `tests/release` start a worker as a program
of its own, by another name of its module."""
READ_LATE = ("PB_", "PYTEST_", "SLOW_ENCODER_")
"""What variables begin with that nothing reads while it is imported."""
PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({socket!r})
    socket.send_fds(server, [b"."], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    answers = server.makefile()
    pid = int(answers.readline())
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = int(answers.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
"""The program `pbstream` for tests: it has a fork run the command in its folder, with its
environment, its files and its signals, and ends as the fork does. It is there in a fiftieth of a
second, where a start of its own takes one."""
STARTED_WITH = dict(os.environ)
"""The environment before libraries under test added what is their own (LiteLLM, torch)."""
LOOK_EVERY = 0.02
"""Seconds between two looks at whether a process has ended."""


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
    """The process that forks; it ends with this one, as its input does, and its forks with it.

    Attributes:
        folder: holds the program `pbstream`, see `PROGRAM`.
    """

    def __init__(self) -> None:
        self._environment = inherited()
        self._lock = Lock()
        self.folder = Path(tempfile.mkdtemp(prefix="pb-forks-"))
        atexit.register(shutil.rmtree, self.folder)
        program = self.folder / "pbstream"
        program.write_text(PROGRAM.format(python=sys.executable, socket=str(self.folder / "at")))
        program.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.forking", str(self.folder / "at")],
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


def programs() -> Path:
    """Return the folder of a program `pbstream` that starts at once: for `PATH`, or to be run."""
    return _server().folder
