"""Start child processes that never outlive their parent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Linux sends the death signal when the *thread* that forked ends, so all children come from one
# thread that stays.
_SPAWNER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
_LEASH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Program that asks Linux for SIGKILL (9) when its parent ends (PR_SET_PDEATHSIG, 1), checks that
the parent is still there, and becomes the command."""


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command` in its own session, its output in `log`; on Linux it is killed when this
    process ends.

    Ctrl-C in the terminal does not reach another session, so the parent decides the order of
    stopping.
    """
    leash = (
        [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid())]
        if sys.platform == "linux"
        else []
    )
    return _SPAWNER.submit(_popen, [*leash, *command], log, env, cwd).result()


def _popen(
    command: Sequence[str], log: Path, env: Mapping[str, str] | None, cwd: Path | None
) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=None if env is None else dict(env),
            cwd=cwd,
        )
