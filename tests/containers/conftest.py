"""Container tests are collected where a Docker daemon answers; elsewhere one line says that they
are not.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest


def docker_answers(*command: str) -> bool:
    """Tell whether a docker command answers; that there is a `docker` proves neither a daemon nor a
    plugin.
    """
    try:
        return (
            subprocess.run(
                ["docker", *command], capture_output=True, timeout=10, check=False
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def daemon_is_here() -> bool:
    """Tell whether the daemon is a process of this machine (or of this container), so that its
    ports are on loopback.
    """
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # processes end while they are listed
            if path.read_text().strip() == "dockerd":
                return True
    return False


DOCKER = docker_answers("version")
COMPOSE = DOCKER and docker_answers("compose", "version")
collect_ignore_glob = ["test_*.py"] if not DOCKER else [] if COMPOSE else ["test_compose.py"]
# Every test removes its containers itself; the reaper is one more image to pull.
os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
if DOCKER and daemon_is_here():
    os.environ.setdefault("TESTCONTAINERS_CONNECTION_MODE", "docker_host")
    os.environ.setdefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not DOCKER:
        terminalreporter.write_line(
            "No Docker daemon answers: the tests in tests/containers were not run."
        )
    elif not COMPOSE:
        terminalreporter.write_line(
            "Docker has no compose plugin: tests/containers/test_compose.py was not run."
        )
