"""The process that forks the tests' workers, gateways and programs: no event loop, no threads,
nothing but imports.

It takes what to run from the connections of the socket that its argument names (see `forked.py`),
and answers with the fork's process id and, at its end, with its exit code. A fork whose connection
ends is killed. This process ends with its input, and its forks with it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import runpy
import selectors
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

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
COMMANDS = ("paretobandit_streams", "commands.cli")
"""The modules of `pbstream`."""
PR_SET_PDEATHSIG = 1


class Run(NamedTuple):
    """What a fork becomes: a module with its arguments, as `python -m` runs it."""

    command: Sequence[str]
    environment: dict[str, str]
    folder: str
    files: Sequence[int]


class Forks:
    """The forks that are there, and the connections of those who asked for them."""

    def __init__(self, path: str) -> None:
        self._ready = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}.new")
        self._listener.listen(64)
        Path(f"{path}.new").rename(path)  # who finds it is answered
        self._ready.register(0, selectors.EVENT_READ)
        self._ready.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> Run | None:
        """Answer until the input ends; in each fork, return what it runs."""
        while True:
            for key, _ in self._ready.select():
                if key.fileobj == 0:
                    return None
                if key.data is None:
                    if (run := self._begin(self._listener.accept()[0])) is not None:
                        return run
                elif key.fileobj in self._ready.get_map():
                    self._over(key.fd, *key.data)

    def _begin(self, asking: socket.socket) -> Run | None:
        _, files, _, _ = socket.recv_fds(asking, 1, 3)
        with asking.makefile() as asked:
            command, folder, environment = json.loads(asked.readline())
        if command[0] in COMMANDS:
            _import_command(command[1:])
        if not (pid := _fork()):
            asking.close()
            for key in self._ready.get_map().values():
                if key.data is not None:
                    key.data[1].close()
            self._ready.close()
            self._listener.close()
            return Run(command, environment, folder, files)
        for file in files:
            os.close(file)
        asking.sendall(b"%d\n" % pid)
        self._ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, asking))
        self._ready.register(asking, selectors.EVENT_READ, (pid, asking))
        return None

    def _over(self, file: int, pid: int, asking: socket.socket) -> None:
        """Say how a fork has ended; kill one for which nobody waits any more."""
        if file == asking.fileno():
            self._ready.unregister(asking)
            os.kill(pid, SIGKILL)
            return
        self._ready.unregister(file)
        os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(KeyError):
            self._ready.unregister(asking)
        with asking, suppress(BrokenPipeError):
            asking.sendall(b"%d\n" % code)


def _import_command(words: Sequence[str]) -> None:
    """Import what a command of `pbstream` runs, for this fork and the next ones."""
    loading = importlib.import_module("commands.cli.loading")
    for name in words:
        if name in loading.COMMANDS:
            importlib.import_module(f"commands.cli.{loading.COMMANDS[name][0]}")
            return


def _fork() -> int:
    """Fork; a child leads its session and dies with this process."""
    parent = os.getpid()
    if not (pid := os.fork()):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(SIGKILL))
        if os.getppid() != parent:
            sys.exit("the parent is gone")
        os.setsid()
    return pid


def become(run: Run) -> None:
    """Run the module of a fork."""
    for number, file in enumerate(run.files):
        os.dup2(file, number)
    for file in set(run.files):
        os.close(file)
    os.environ.clear()
    os.environ.update(run.environment)
    os.chdir(run.folder)
    sys.argv = [*run.command]
    runpy.run_module(run.command[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    if (found := Forks(sys.argv[1]).serve()) is not None:
        become(found)
