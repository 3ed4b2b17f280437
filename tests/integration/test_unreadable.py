"""A batch that is damaged on the broker's disk: its partition waits and says so, all others
go on.
"""

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.broker.choose import LocalKafka
from commands.broker.wire import free_ports
from doors.gateway.books import Books
from tests.integration.service import RunningService, request, router, running_service

HOME, ELSEWHERE = "acme.damaged", "elsewhere"
HEADER = 61
"""Bytes before the records of a batch; the checksum covers what stands behind its own
field.
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """Start a broker whose disk is this test's."""
    with LocalKafka(1, tmp_path / "kafka") as kafka:
        yield kafka.bootstrap


def spoil_last_batch(folder: Path, topic: str, partition: int) -> Path:
    """Change the last byte of a partition's log."""
    (segment,) = folder.glob(f"**/{topic}-{partition}/00000000000000000000.log")
    flip(segment)
    return segment


def flip(segment: Path) -> None:
    with segment.open("r+b") as log:
        log.seek(-2, 2)
        byte = log.read(1)[0]
        log.seek(-2, 2)
        log.write(bytes([byte ^ 0xFF]))


def readiness(port: int) -> tuple[int, str]:
    """Return status and text of /readyz."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


async def decided(service: RunningService, request_id: str) -> None:
    await service.until(lambda: service.route(request_id), f"the decision of {request_id}")


async def test_damaged_batch_is_named_and_keeps_only_its_partition_waiting(
    broker: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    async with running_service(broker, tmp_path, partitions=4) as service:
        assert service.partition_of(HOME) != service.partition_of(ELSEWHERE)
        first = await service.ready(service.worker())
        for home in (HOME, ELSEWHERE):
            await service.send("routers", router(home))
            await service.send("requests", request(home, f"{home}-0"))
            await decided(service, f"{home}-0")
        first.terminate()
        first.process.wait(30)
        await service.send("requests", request(HOME, "good"))
        lost = await service.send("requests", request(HOME, "damaged"))
        topic = service.settings.topic("requests")
        segment = spoil_last_batch(tmp_path / "kafka", topic, lost.partition)
        await service.send("requests", request(ELSEWHERE, "other"))

        worker = await service.ready(service.worker(PB_WEB_PORT=str(port)))
        await decided(service, "good")  # what stands before it in the same fetch is not lost
        await decided(service, "other")
        await service.until(lambda: readiness(port)[0] == 503, "a worker that says so", poll=False)
        assert (
            f"topic {topic}, partition {lost.partition}: the batch with the offsets {lost.offset}"
            in readiness(port)[1]
        )
        said = worker.log.read_text()
        assert said.count("can't be read") == 1
        assert (
            f"--topic {topic}:{lost.partition} --reset-offsets --to-offset {lost.offset + 1}"
            in said
        )
        await service.send("requests", request(ELSEWHERE, "later"))
        await decided(service, "later")
        assert worker.running

        flip(segment)  # the replica is restored
        await decided(service, "damaged")
        await service.until(
            lambda: readiness(port)[0] == 200, "a worker that is ready again", poll=False
        )


async def test_a_gateway_leaves_a_damaged_state_out_and_shows_all_others(
    broker: str, tmp_path: Path
) -> None:
    async with running_service(broker, tmp_path, partitions=1) as service:
        for name in ("before", "damaged", "after"):
            sent = await service.send("lambda", {"router_id": name})
            if name == "damaged":
                spoil_last_batch(tmp_path / "kafka", service.settings.topic("lambda"), 0)
        assert sent.offset == 2
        books = Books(service.settings)
        books.reader.start()
        await service.until(lambda: books["after"], "what stands behind it", poll=False)
        assert (books.reader.trouble, books["before"] is None, books["damaged"]) == (
            None,
            False,
            None,
        )
        await books.reader.stop()
