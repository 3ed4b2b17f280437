"""What the demo needs around it: a folder for its results, topics of its own, a worker process that is ready."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streams.cli.failures import Failure
from streams.kafka.child import spawn
from streams.settings import Settings
from streams.topics import topic_specs

READY_SECONDS = 60.0
STOP_SECONDS = 10.0
LAST_LINES = 12


@contextmanager
def running_worker(settings: Settings, *, environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `pbstream worker` with these variables and yield it once it is ready; it is stopped at the end, and never outlives us.

    Raises:
        Failure: it ended, or was not ready in time; with the end of its log.
    """
    given = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
        "PB_WEB_PORT": str(settings.web_port),
        **environment,
    }
    command = ["env", *(f"{name}={value}" for name, value in given.items()), sys.executable, "-m", "streams.cli", "worker"]
    process = spawn(command, log=log)
    try:
        _wait_ready(process, settings.web_port, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def require_alive(process: subprocess.Popen[bytes], log: Path) -> None:
    """Raise a Failure with the end of its log if the worker has ended."""
    if process.poll() is not None:
        raise Failure(f"the worker ended with code {process.returncode}; the end of {log}:\n{_last_words(log)}")


def _wait_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline, why = time.monotonic() + READY_SECONDS, "it does not listen"
    while time.monotonic() < deadline:
        require_alive(process, log)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1.0):
                return
        except urllib.error.HTTPError as unready:
            why = unready.read().decode(errors="replace").strip()
        except OSError:
            pass
        time.sleep(0.1)
    raise Failure(f"the worker was not ready within {READY_SECONDS:g} s ({why}); the end of {log}:\n{_last_words(log)}")


def _last_words(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])


async def delete_topics(settings: Settings) -> None:
    """Delete the topics of a demo from a broker that goes on; a broker that is gone has none."""
    admin = AIOKafkaAdminClient(**settings.kafka_auth())
    try:
        await admin.start()
        await admin.delete_topics([spec.name for spec in topic_specs(settings)])
    except KafkaError:
        return
    finally:
        await admin.close()
