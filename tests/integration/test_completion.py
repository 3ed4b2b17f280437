"""Completion in the shells themselves: what `pbstream completion` prints is read by each, and
answers a key press.
"""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.service import PATIENCE

ASKING = {
    "bash": """source {script}
COMP_WORDS=(pbstream {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()
$(complete -p pbstream | sed 's/.*-F \\([^ ]*\\).*/\\1/') pbstream; echo "${{COMPREPLY[@]}}" """,
    "fish": "source {script}; complete --do-complete 'pbstream {words}'",
}
"""How the shells are asked without a terminal."""


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment in which a shell finds `pbstream` and nobody's settings."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TERM": "dumb", "PS1": "> "}


def written(shell: str, folder: Path, environment: dict[str, str]) -> Path:
    """Write what the shell has to read."""
    script = folder / f"pbstream.{shell}"
    command = ["pbstream", "completion", shell]
    script.write_bytes(subprocess.run(command, env=environment, check=True, stdout=-1).stdout)
    return script


@pytest.mark.parametrize("shell", ASKING)
@pytest.mark.parametrize(
    ("words", "expected"), [("requ", "request"), ("models add --input-p", "--input-price")]
)
def test_bash_and_fish_complete(
    shell: str, words: str, expected: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    asking = ASKING[shell].format(script=written(shell, tmp_path, environment), words=words)
    own = ["--no-config"] if shell == "fish" else ["--norc"]
    said = subprocess.run(
        [shell, *own, "-c", asking], env=environment, check=True, capture_output=True, text=True
    )
    assert [line.split("\t")[0] for line in said.stdout.splitlines()] == [expected], said.stderr


def test_zsh_completes_where_nothing_has_set_completion_up(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """zsh completes on a terminal only; a ~/.zshrc may hold nothing but this."""
    script = written("zsh", tmp_path, environment)
    ours, theirs = pty.openpty()
    zsh = subprocess.Popen(
        ["zsh", "-f", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "HOME": str(tmp_path)},
        start_new_session=True,
    )
    try:
        os.write(ours, f"source {script}; echo re''ady\n".encode())
        assert b"not found" not in until(ours, b"ready")
        os.write(ours, b"pbstream requ\t")
        until(ours, b"request ")
        os.write(ours, b"\x15pbstream models add --input-p\t")
        until(ours, b"--input-price ")
    finally:
        zsh.kill()
        zsh.wait()
        os.close(ours)
        os.close(theirs)


def until(terminal: int, expected: bytes) -> bytes:
    """Read from a terminal until it shows something."""
    shown, deadline = b"", time.monotonic() + PATIENCE
    while expected not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 1.0)[0]:
            shown += os.read(terminal, 4096)
    return shown
