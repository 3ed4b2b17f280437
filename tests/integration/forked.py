"""Start the tests' workers, gateways and programs as forks of one process that has imported what
they import: half of a short life's CPU.

`forking.py` is that process, one for all processes of a parallel run. A fork replaces the
environment, begins a session of its own, dies with its parent, and runs its module as `python -m`
does; only the seed of hashes is the same in all of them.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from signal import SIGKILL, SIGTERM

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
    asked = ["paretobandit_streams", *sys.argv[1:]], os.getcwd(), dict(os.environ)
    server.sendall(json.dumps(asked).encode() + b"\\n")
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
SOCKET = "socket"
STARTING = 60.0
"""Seconds until the process that forks has to answer."""
shared: Path | None = None
"""The folder of the process that forks for all processes of a parallel run."""


def start(
    command: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Path = ROOT
) -> subprocess.Popen[bytes] | Forked:
    """Start a module with its arguments, its output in `log`: forked where that shows nothing else
    than a start of its own would.
    """
    module = command[0].removeprefix("tests.integration.")
    # A fork may have an environment in which all that imports read is the same.
    different = dict(dict(env).items() ^ inherited().items())
    may_fork = all(name.startswith(READ_LATE) for name in different)
    if sys.platform == "linux" and cwd == ROOT and module in MODULES and may_fork:
        return Forked(command, log=log, env=env)
    return spawn([sys.executable, "-m", *command], log=log, env=env, cwd=cwd)


def inherited() -> dict[str, str]:
    """Return what a worker has of the environment that this process was started with."""
    own = ("PB_", "KAFKA_", "PYTHONDONTWRITE")
    return {name: value for name, value in STARTED_WITH.items() if not name.startswith(own)}


class Forked:
    """A forked process, with what tests use of `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str]) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(str(programs() / SOCKET))
        with Path(os.devnull).open("rb") as nothing, log.open("ab") as output:
            files = [nothing.fileno(), output.fileno(), output.fileno()]
            socket.send_fds(self._server, [b"."], files)
        self._server.sendall(json.dumps([[*command], str(ROOT), dict(env)]).encode() + b"\n")
        self.pid = int(self._answer())
        self.returncode: int | None = None

    def _answer(self) -> bytes:
        answer = b""
        while not answer.endswith(b"\n"):
            byte = self._server.recv(1)
            assert byte, "the process that forks has ended"
            answer += byte
        return answer

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it is there."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, and return the exit code.

        Raises:
            subprocess.TimeoutExpired: after so many seconds.
        """
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._answer())
            except (TimeoutError, BlockingIOError) as error:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0) from error
            self._server.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it is there."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(SIGTERM)


def begin() -> Path:
    """Start the process that forks, which ends with this one; return the folder of its socket and
    of the program `pbstream`, see `PROGRAM`.
    """
    folder = Path(tempfile.mkdtemp(prefix="pb-forks-"))
    atexit.register(shutil.rmtree, folder)
    program = folder / "pbstream"
    program.write_text(PROGRAM.format(python=sys.executable, socket=str(folder / SOCKET)))
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.forking", str(folder / SOCKET)],
        stdin=subprocess.PIPE,
        # A pipe, as most forks have: as it starts, Python notes whether output can be wound back.
        stdout=subprocess.PIPE,
        env=inherited(),
        cwd=ROOT,
        start_new_session=True,
    )
    atexit.register(process.communicate)
    return folder


@cache
def programs() -> Path:
    """Return the folder of a program `pbstream` that starts at once: for `PATH`, or to be run."""
    folder = shared or begin()
    deadline = time.monotonic() + STARTING
    while not (folder / SOCKET).exists():
        assert time.monotonic() < deadline, "the process that forks does not answer"
        time.sleep(0.05)
    return folder
