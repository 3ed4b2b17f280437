"""A worker that was started with half of another service's settings, or on other topics than it
thinks, says so at once.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from agents.table.recovered import ForeignState
from streams.log.service_topics import create_topics
from streams.settings import Settings
from streams.state.ownership import require_own_group
from tests.integration.forked import programs
from tests.integration.service import ROOT, RunningService, request, router, running_service

HOME = "acme.owner"


def run(
    settings: Settings, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that is to end by itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PB_")}
    own = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PARTITIONS": str(settings.partitions),
        "PB_WEB_PORT": "0",
    }
    return subprocess.run(
        [str(programs() / "pbstream"), *arguments],
        env={**kept, **own, "PB_ENCODER_BACKEND": "none", **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


async def busy(service: RunningService) -> None:
    await service.ready(service.worker())
    await service.send("routers", router(HOME))
    await service.send("requests", request(HOME, "r-1"))
    await service.until(lambda: service.route("r-1"), "a decision")


async def first_commit(other: Settings) -> None:
    """Wait until the group has committed offsets, by which a service of other topics knows it."""
    async with asyncio.timeout(60):
        while True:
            try:
                await require_own_group(other)
            except ForeignState:
                return
            await asyncio.sleep(0.1)


async def test_the_group_of_another_prefix_is_not_joined_and_its_state_neither_audited_nor_exported(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path) as service:
        await busy(service)
        (worker,) = service.workers
        test = service.settings.model_copy(update={"prefix": f"test-{service.settings.prefix}"})
        await create_topics(test)
        await first_commit(test)
        export = ("snapshot", "export", str(tmp_path / "a.pbs"), "--router", HOME)
        backup = ("snapshot", "backup", str(tmp_path))
        for command in (("worker",), ("audit",), export, backup):
            refused = await asyncio.to_thread(
                run, test, *command, "--prefix", test.prefix, "--app-id", test.app_id
            )
            assert refused.returncode == 1, refused.stderr
            assert service.settings.topic("requests") in refused.stderr
            assert "PB_APP_ID" in refused.stderr and "Traceback" not in refused.stderr
        await service.send("requests", request(HOME, "r-2"))
        await service.until(lambda: service.route("r-2"), "the next decision")
        assert worker.running and worker.log.read_text().count("Setting newly assigned") == 1


async def test_another_number_of_partitions_is_said_at_once(kafka: str, tmp_path: Path) -> None:
    async with running_service(kafka, tmp_path, partitions=2) as service:
        settings = service.settings
        other = settings.model_copy(update={"partitions": 5})
        async with asyncio.timeout(60):
            refused = await asyncio.to_thread(
                run, other, "worker", PB_PREFIX=settings.prefix, PB_APP_ID=settings.app_id
            )
        assert refused.returncode == 1
        assert (
            f"topic {settings.topic('requests')} has 2 partitions, PB_PARTITIONS is 5: set "
            "PB_PARTITIONS to 2"
        ) in refused.stderr
        assert len(refused.stderr.splitlines()) < 16, refused.stderr


async def test_a_free_port_is_announced_as_the_one_that_was_taken(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(kafka, tmp_path) as service:
        worker = service.worker(module="commands.cli worker")
        found = re.compile(r"(\S+/readyz) says when it is ready")
        await service.until(lambda: found.search(worker.log.read_text()), "its address", poll=False)
        address = found.findall(worker.log.read_text())[0]
        assert ":0/" not in address

        def answered() -> bool:
            try:
                with urllib.request.urlopen(address, timeout=5) as answer:
                    return bool(answer.status == 200)
            except urllib.error.HTTPError:
                return False

        await service.until(answered, "a worker that is ready", poll=False)
