"""A worker that has nothing to do says what it can't reach: in its readiness at once, in its log
once.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.choose import LocalKafka
from commands.broker.wire import free_ports
from tests.integration.service import Worker, cost, request, reward, router, running_service
from tests.integration.test_unreadable import readiness

HOME = "acme.ready"
LONG = 8
"""Seconds of silence, by the worker's own count, in which it may not be ready once."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LocalKafka]:
    """Start a broker that can be killed."""
    with LocalKafka(1, tmp_path / "kafka") as kafka:
        yield kafka


def lines(worker: Worker, said: int) -> list[str]:
    """Return what a worker has logged behind its first `said` characters."""
    return worker.log.read_text()[said:].splitlines()


async def test_an_idle_worker_is_not_ready_while_kafka_is_away_and_says_so_in_two_lines(
    broker: LocalKafka, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    async with running_service(broker.bootstrap, tmp_path) as service:
        worker = await service.ready(service.worker(PB_WEB_PORT=str(port)))
        await service.send("routers", router(HOME))
        await service.send("requests", request(HOME, "before"))
        # What is to be written when the group goes on without its worker ends the worker: this one
        # has nothing to do.
        await service.until(
            lambda: service.lambda_of(HOME).get("decided") == 1,
            "a decision, and all that it brings",
        )
        await service.until(lambda: readiness(port)[0] == 200, "a worker that is ready", poll=False)
        said = len(worker.log.read_text())
        await asyncio.to_thread(broker.kill, 1)
        await service.until(
            lambda: readiness(port)[0] == 503, "a worker that is not ready", poll=False
        )
        assert f"Kafka at {broker.bootstrap} has not answered" in readiness(port)[1]
        looks = [503]

        def away_for_long() -> bool:
            status, text = readiness(port)
            looks.append(status)
            silent = re.search(r"has not answered for (\d+) s", text)
            return status != 503 or (silent is not None and int(silent[1]) >= LONG)

        await service.until(away_for_long, f"{LONG} seconds without Kafka", poll=False)
        assert set(looks) == {503}  # and it stays so
        await asyncio.to_thread(broker.start_node, 1)
        await service.until(
            lambda: readiness(port)[0] == 200, "a worker that is ready again", poll=False
        )
        await service.send("requests", request(HOME, "after"))
        await service.until(lambda: service.route("after"), "a decision afterwards")
        await service.until(
            lambda: "is back after" in "\n".join(lines(worker, said)), "the end of it", poll=False
        )
        about = [line for line in lines(worker, said) if "Kafka at" in line]
        assert len(about) == 2 and "failures were counted" in about[1], about
        loud = [line for line in lines(worker, said) if " WARNING " in line or " ERROR " in line]
        assert len(loud) <= 4, "\n".join(loud)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a Redis that only this test talks to."""
    (port,) = free_ports(1)
    command = [
        "redis-server",
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    yield f"redis://127.0.0.1:{port}/0", process
    process.kill()
    process.wait()


async def test_a_worker_goes_on_without_redis_and_says_so(
    kafka: str, own_redis: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    (port,), (url, process) = free_ports(1), own_redis
    async with running_service(kafka, tmp_path, PB_REDIS_URL=url, PB_WEB_PORT=str(port)) as service:
        worker = await service.ready(service.worker())
        await service.send("routers", router(HOME))
        await service.send("requests", request(HOME, "r-0"))
        await service.until(lambda: service.route("r-0"), "a decision")
        await service.until(lambda: readiness(port)[0] == 200, "a worker that is ready", poll=False)
        said = len(worker.log.read_text())
        process.send_signal(signal.SIGSTOP)
        await service.until(
            lambda: readiness(port)[0] == 503, "a worker that is not ready", poll=False
        )
        assert f"Redis at {url[8:-2]} (PB_REDIS_URL) does not answer" in readiness(port)[1]
        await service.send("requests", request(HOME, "r-1"))
        await service.until(lambda: service.route("r-1"), "a decision without Redis")
        for name in ("r-0", "r-1"):
            await service.send("costs", cost(HOME, name, 0.0005))
            await service.send("rewards", reward(HOME, name, 0.9))
        done = {"settled": 2, "rewards_applied": 2}
        await service.until(
            lambda: done.items() <= service.lambda_of(HOME).items(), "bills and rewards"
        )
        process.send_signal(signal.SIGCONT)
        await service.until(
            lambda: readiness(port)[0] == 200, "a worker that is ready again", poll=False
        )
        about = [line for line in lines(worker, said) if "Redis at" in line]
        assert len(about) == 2 and "is back after" in about[1], about
        assert not service.dead_letters()


async def test_a_full_redis_stops_nothing(
    kafka: str, own_redis: tuple[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    url, _ = own_redis
    async with running_service(kafka, tmp_path, PB_REDIS_URL=url) as service:
        worker = await service.ready(service.worker())
        await asyncio.to_thread(
            subprocess.run,
            ["redis-cli", "-u", url, "config", "set", "maxmemory", "1"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        await service.send("routers", router(HOME))
        for number in range(5):
            await service.send("requests", request(HOME, f"r-{number}", seed=number))
        await service.until(lambda: len(service.routes(HOME)) == 5, "decisions")
        worker.kill()  # the next one has nothing at hand
        second = await service.ready(service.worker())
        for number in range(5):
            await service.send("costs", cost(HOME, f"r-{number}", 0.0005))
            await service.send("rewards", reward(HOME, f"r-{number}", 0.9))
        done = {"settled": 5, "rewards_applied": 5}
        await service.until(
            lambda: done.items() <= service.lambda_of(HOME).items(), "bills and rewards"
        )
        assert second.running and not service.dead_letters()
        assert worker.log.read_text().count("OutOfMemoryError") == 1
