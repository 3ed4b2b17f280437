"""A worker that stops hands its partitions over at once, and what it decided is not decided again
by the next one.
"""

import asyncio
import re
from pathlib import Path

from tests.integration.service import request, router, running_service

SESSION = 30.0
"""Longer than the test waits: only a member that says goodbye is missed sooner."""
PARTITIONS = 2


async def test_a_stopped_worker_hands_over_long_before_its_session_ends(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(
        kafka, tmp_path, partitions=PARTITIONS, PB_SESSION_TIMEOUT=str(SESSION)
    ) as service:
        homes = {service.partition_of(name): name for name in map(str, range(20))}
        first = await service.ready(service.worker(instance="first"))
        for home in homes.values():
            await service.send("routers", router(home))
        for number in range(20):
            await service.send("requests", request(homes[number % PARTITIONS], f"r-{number}"))
        await service.until(lambda: len(service.routes()) >= 20, "the first decisions")
        second = await service.ready(service.worker(instance="second"))
        async with asyncio.timeout(SESSION * 0.8):
            first.terminate()
            await service.until(
                lambda: second.partitions == frozenset(homes), "the second to have every partition"
            )
            for home in homes.values():
                await service.send("requests", request(home, "after"))
            await service.until(
                lambda: len(service.routes()) >= 20 + PARTITIONS, "a decision everywhere"
            )
        await service.until(lambda: not first.running, "its end", poll=False)
        assert first.process.returncode == 0
        assert sorted(route["seq"] for route in service.routes(homes[0])) == list(range(1, 12))
        assert not any(route["repeat"] for route in service.routes())


async def test_of_two_workers_with_one_instance_id_the_older_ends_and_says_why(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path, partitions=PARTITIONS) as service:
        older = await service.ready(service.worker(instance="same"))
        newer = service.worker(instance="same")
        await service.until(lambda: not older.running, "the end of the older one", poll=False)
        assert older.process.returncode == 1
        (said,) = re.findall(r" ERROR (.*)", older.log.read_text())
        assert f"group {service.settings.app_id} with PB_INSTANCE_ID=same" in said
        assert "Traceback" not in older.log.read_text()
        await service.ready(newer)
        await service.send("routers", router("after"))
        await service.send("requests", request("after", "r"))
        await service.until(lambda: service.route("r"), "a decision of the newer one")
        assert newer.running and " ERROR " not in newer.log.read_text()


async def test_a_worker_that_was_frozen_beyond_its_session_joins_again_with_its_instance_id(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(
        kafka, tmp_path, partitions=PARTITIONS, PB_SESSION_TIMEOUT="2"
    ) as service:
        worker = await service.ready(service.worker(instance="alone"))
        worker.freeze()
        beside = await service.ready(service.worker(instance="beside"))
        await service.until(
            lambda: len(beside.partitions) == PARTITIONS, "all partitions elsewhere", poll=False
        )
        worker.thaw()
        await service.until(
            lambda: worker.log.read_text().count("streams.service.worker_app INFO ready") == 2,
            "a second membership",
            poll=False,
        )
        assert "PB_INSTANCE_ID" not in worker.log.read_text()
