"""Set up what the demo needs: a folder for its results, topics of its own, a worker process that is
ready.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from commands.broker.child import spawn
from commands.broker.wire import free_ports
from doors.console.failures import Failure
from streams.log.service_topics import topic_specs
from streams.settings import Settings

T = TypeVar("T")
READY_SECONDS = 60.0
"""Seconds within which the worker must be ready."""
STOP_SECONDS = 10.0
"""Seconds for an orderly stop of the worker; then it is killed."""
LAST_LINES = 12
"""Lines of the worker's log that are shown if it did not start."""


class Process(Protocol):
    """A started process, with the part of `subprocess.Popen` that the demo uses."""

    @property
    def returncode(self) -> int | None:
        """Return the exit code that `poll` found last."""
        ...

    def poll(self) -> int | None:
        """Return the exit code, or None while the process is there."""
        ...


@contextmanager
def running_worker(
    settings: Settings, *, environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `pbstream worker` with these variables and yield it once it is ready; it is stopped at
    the end, and never outlives this process.

    Raises:
        Failure: it ended, or was not ready in time; with the end of its log.
    """
    given = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
        "PB_PARTITIONS": str(settings.partitions),
        "PB_WEB_PORT": str(settings.web_port),
        **environment,
    }
    command = [
        "env",
        *(f"{name}={value}" for name, value in given.items()),
        sys.executable,
        "-m",
        "commands.cli",
        "worker",
    ]
    process = spawn(command, log=log)
    try:
        wait_ready(process, settings.web_port, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def running_dashboard(
    settings: Settings, *, environment: Mapping[str, str], opens: bool, log: Path
) -> Iterator[str]:
    """Run `pbstream dashboard` beside the demo and yield its address, without waiting for it; it is
    stopped at the end.

    Args:
        environment: the worker's, so that its studies read prompts as the worker does.
        opens: open it in this machine's browser.
    """
    port = free_ports(1)[0]
    given = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
        "PB_PARTITIONS": str(settings.partitions),
        "PB_DASHBOARD_PORT": str(port),
        **environment,
    }
    variables = (f"{name}={value}" for name, value in given.items())
    # Nicer than the worker: on a small machine the page must not slow what it shows.
    command = ["nice", "env", *variables, sys.executable, "-m", "commands.cli", "dashboard"]
    process = spawn([*command, *(["--open"] if opens else [])], log=log)
    try:
        # Killed at the end: it holds nothing that has to be saved.
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


async def beside(
    process: subprocess.Popen[bytes], work: Coroutine[object, None, T], *, log: Path
) -> T:
    """Run `work`, and fail if the worker ends first.

    Raises:
        Failure: the worker ended first; with the end of its log.
    """
    task = asyncio.create_task(work)
    try:
        # Otherwise a dead worker would be noticed only after a minute of silence.
        while not (await asyncio.wait([task], timeout=0.3))[0]:
            _require_alive(process, log)
        return await task
    finally:
        task.cancel()


def _require_alive(process: Process, log: Path) -> None:
    if process.poll() is not None:
        raise Failure(
            f"the worker ended with code {process.returncode}; the end of "
            f"{log}:\n{_last_words(log)}"
        )


def wait_ready(process: Process, port: int, log: Path) -> None:
    """Wait until a worker says on its port that it takes events.

    Raises:
        Failure: it ended, or was not ready in time; with the end of its log.
    """
    deadline, why = time.monotonic() + READY_SECONDS, "it does not listen"
    while time.monotonic() < deadline:
        _require_alive(process, log)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1.0):
                return
        # 503 until it is ready; its text says what is missing, and is the best error there is.
        except urllib.error.HTTPError as unready:
            why = unready.read().decode(errors="replace").strip()
        except OSError:
            pass
        time.sleep(0.1)
    raise Failure(
        f"the worker was not ready within {READY_SECONDS:g} s ({why}); the end of "
        f"{log}:\n{_last_words(log)}"
    )


def _last_words(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])


async def delete_topics(settings: Settings) -> None:
    """Delete the topics of a demo, if its broker still runs."""
    admin = AIOKafkaAdminClient(**settings.kafka_auth())
    try:
        await admin.start()
        await admin.delete_topics([spec.name for spec in topic_specs(settings)])
    except KafkaError:
        return
    finally:
        await admin.close()
