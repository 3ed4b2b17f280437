"""The process that forks the tests' workers, gateways and programs: no event loop, no threads,
nothing but imports.

It takes questions from its input, a line of JSON each (see `forked.py`), and from the programs
that connect to the socket which its argument names (see `PROGRAM` there). It ends with its input,
and its forks with it.
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
PROGRAM = "paretobandit_streams"
PR_SET_PDEATHSIG = 1


class Run(NamedTuple):
    """What a fork becomes: a module with its arguments, as `python -m` runs it."""

    command: Sequence[str]
    environment: dict[str, str]
    folder: str
    files: tuple[int, int, int]


class Programs:
    """The programs that wait for their forks: each has a connection, and hears a process id and an
    exit code."""

    def __init__(self, path: str) -> None:
        self._ready = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._ready.register(0, selectors.EVENT_READ)
        self._ready.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> Run | None:
        """Answer until the input ends; in each fork, return what it runs."""
        while True:
            for key, _ in self._ready.select():
                run = None
                if key.fileobj == 0:
                    if not (line := sys.stdin.readline()):
                        return None
                    run = _answer(line)
                elif key.data is None:
                    run = self._begin(self._listener.accept()[0])
                elif key.fileobj in self._ready.get_map():
                    self._over(key.fd, *key.data)
                if run is not None:
                    self._ready.close()
                    self._listener.close()
                    return run

    def _begin(self, program: socket.socket) -> Run | None:
        _, files, _, _ = socket.recv_fds(program, 1, 3)
        with program.makefile() as asked:
            words, folder, environment = json.loads(asked.readline())
        _import_command(words)
        if not (pid := _fork()):
            program.close()
            for key in self._ready.get_map().values():
                if key.data is not None:
                    key.data[1].close()
            return Run([PROGRAM, *words], environment, folder, (files[0], files[1], files[2]))
        for file in files:
            os.close(file)
        program.sendall(b"%d\n" % pid)
        self._ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, program))
        self._ready.register(program, selectors.EVENT_READ, (pid, program))
        return None

    def _over(self, file: int, pid: int, program: socket.socket) -> None:
        """Say how a fork has ended; kill one whose program is gone."""
        if file == program.fileno():
            self._ready.unregister(program)
            os.kill(pid, SIGKILL)
            return
        self._ready.unregister(file)
        os.close(file)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(KeyError):
            self._ready.unregister(program)
        with program, suppress(BrokenPipeError):
            program.sendall(b"%d\n" % code)


def _answer(line: str) -> Run | None:
    """Answer a question: to a process id its exit code or None, to a command a process id."""
    match json.loads(line):
        case [int(pid)]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        case [command, log, environment]:
            if not (answer := _fork()):
                with Path(os.devnull).open("rb") as nothing, Path(log).open("ab") as output:
                    files = os.dup(nothing.fileno()), os.dup(output.fileno())
                return Run(list(command), environment, str(Path.cwd()), (*files, files[1]))
    print(json.dumps(answer), flush=True)
    return None


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
    if (found := Programs(sys.argv[1]).serve()) is not None:
        become(found)
