"""`pbstream worker --processes N`: several workers as one, whoever of them ends."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from pathlib import Path

import psutil
from prometheus_client.parser import text_string_to_metric_families

from commands.broker.wire import free_ports
from tests.integration.service import RunningService, Worker, request, router, running_service
from tests.integration.test_unreadable import readiness

CREW = "commands.cli.__main__ worker --processes 2"
"""Of this module's name nothing is forked, see `forked.py`: the crew is a program of its own."""
HOMES = [f"acme.{number}" for number in range(8)]


def pids(crew: Worker) -> list[int]:
    """Return the processes of the members that were started, in order."""
    return [int(pid) for pid in re.findall(r"member=\d+ pid=(\d+) started", crew.log.read_text())]


def requests_counted(port: int) -> float:
    """Return how many requests all members have finished."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        page = answer.read().decode()
    return sum(
        sample.value
        for metric in text_string_to_metric_families(page)
        for sample in metric.samples
        if sample.name == "pb_events_total" and sample.labels["topic"] == "requests"
    )


async def decided(service: RunningService, name: str) -> None:
    """Let every router decide a request."""
    for home in HOMES:
        await service.send("requests", request(home, f"{name}-{home}"))
    for home in HOMES:
        await service.until(lambda home=home: service.route(f"{name}-{home}"), "decisions")


async def test_a_member_that_is_killed_is_replaced_and_events_go_on(
    kafka: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    async with running_service(kafka, tmp_path, partitions=4) as service:
        crew = service.worker(module=CREW, PB_WEB_PORT=str(port))

        def is_ready() -> bool:
            assert crew.running, crew.tail()
            return readiness(port)[0] == 200

        await service.until(is_ready, "a crew that is ready", poll=False)
        for home in HOMES:
            await service.send("routers", router(home))
        await decided(service, "before")
        # Events are counted once their agent asks for more, which is after their answers.
        await service.until(
            lambda: requests_counted(port) == len(HOMES), "counts of all members", poll=False
        )
        first, second = pids(crew)
        os.kill(first, signal.SIGKILL)
        await service.until(lambda: len(pids(crew)) == 3, "another member", poll=False)
        await service.until(is_ready, "a crew that is ready again", poll=False)
        await decided(service, "after")
        # What the first member had counted is not forgotten.
        await service.until(
            lambda: requests_counted(port) >= 2 * len(HOMES), "counts of all members", poll=False
        )
        assert len(service.routes()) >= 2 * len(HOMES) and not service.reasons()
        crew.terminate()
        await service.until(lambda: not crew.running, "the end of all", poll=False)
        assert crew.process.wait() == 0
        assert not any(psutil.pid_exists(pid) for pid in pids(crew))
        assert second in pids(crew)


async def test_members_end_with_their_crew(kafka: str, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with running_service(kafka, tmp_path, partitions=4) as service:
        crew = service.worker(module=CREW, PB_WEB_PORT=str(port))
        await service.until(
            lambda: len(pids(crew)) == 2 and readiness(port)[0] == 200, "a crew", poll=False
        )
        crew.kill()
        await service.until(
            lambda: not any(psutil.pid_exists(pid) for pid in pids(crew)),
            "the end of all members",
            poll=False,
        )


async def test_a_crew_whose_members_cannot_begin_ends_and_says_why(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=4) as service:
        crew = service.worker(module=CREW, PB_PARTITIONS="7", PB_WEB_PORT="0")
        await service.until(lambda: not crew.running, "the end of all", poll=False)
        assert crew.process.wait() == 1
        assert "PB_PARTITIONS" in crew.log.read_text() and "Traceback" not in crew.tail()
