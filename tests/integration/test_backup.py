"""A backup holds every router of a service, and a service on other topics goes on from it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from commands.cli import main
from tests.integration.service import RunningService, cost, request, reward, router, running_service

ROUTERS = 40  # more than are declared at once
TAUGHT = 5
POOL = {"pool_id": "shop", "budget": {"usd": 5, "per": "day"}}
SAME = ("model", "reason", "expected_reward", "expected_cost_usd", "lambda_t", "candidates")


def pbstream(service: RunningService, *arguments: str) -> Result:
    settings = service.settings
    env = {
        "PB_BOOTSTRAP": settings.bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": settings.app_id,
    }
    return CliRunner().invoke(
        main, ["snapshot", *arguments], env={**env, "PB_PARTITIONS": str(settings.partitions)}
    )


async def in_thread(service: RunningService, *arguments: str) -> Result:
    """Run a command beside the test's own loop."""
    ran = await asyncio.to_thread(pbstream, service, *arguments)
    assert ran.exit_code == 0, ran.output
    return ran


def names() -> list[str]:
    return [f"r{number}" for number in range(ROUTERS)]


async def teach(service: RunningService) -> None:
    await service.post("pools", POOL)
    for name in names():
        await service.post("routers", router(name))
    for name in names():
        for number in range(TAUGHT):
            await service.post("requests", request(name, f"q-{number}", seed=number))
            await service.post("costs", cost(name, f"q-{number}", 0.0003 * (1 + number)))
            await service.post("rewards", reward(name, f"q-{number}", 0.1 * number))
    await service.until(
        lambda: all(service.lambda_of(name).get("rewards_applied") == TAUGHT for name in names()),
        "all rewards",
    )


async def pools(service: RunningService) -> list[Any]:
    """Return the declarations of pools."""
    log = await service.log_of(service.settings.topic("pools"))
    return [record for records in log.values() for record in records]


async def asked(service: RunningService) -> dict[str, dict[str, Any]]:
    """Ask every router something, and return what must not depend on where it is."""
    for name in names():
        await service.post("requests", request(name, "after", seed=99))
    await service.until(
        lambda: sum(route["request_id"] == "after" for route in service.routes()) == ROUTERS,
        "every decision",
    )
    found = {
        route["router_id"]: route for route in service.routes() if route["request_id"] == "after"
    }
    return {name: {part: route[part] for part in SAME} for name, route in found.items()}


async def test_service_on_other_topics_goes_on_from_a_backup(kafka: str, tmp_path: Path) -> None:
    backups, logs = tmp_path / "backups", tmp_path / "logs"
    (backups / ".2026-01-01T000000Z.part").mkdir(parents=True)  # broken off once
    (logs / "a").mkdir(parents=True)
    (logs / "b").mkdir()
    async with (
        running_service(kafka, logs / "a", partitions=4) as here,
        running_service(kafka, logs / "b", partitions=2) as there,
    ):
        await here.ready(here.worker())
        await teach(here)
        said = await in_thread(here, "backup", str(backups), "--keep", "1")
        assert f"{ROUTERS} routers" in said.output
        (made,) = (path for path in backups.iterdir() if not path.name.startswith("."))
        assert {path.stem for path in made.iterdir()} == {*names(), "pools"}

        await there.ready(there.worker())
        said = await in_thread(there, "restore", str(backups))
        assert f"{ROUTERS} routers restored" in said.output
        assert [json.loads(record.value) for record in await pools(there)] == [POOL]
        said = await in_thread(there, "restore", str(made))
        assert f"0 routers restored from {made}, {ROUTERS} were there already" in said.output
        assert len(await pools(there)) == 1
        assert await asked(there) == await asked(here)
        assert there.reasons() == {}  # what was there already was not declared again


def test_restore_of_a_folder_without_a_backup_says_so(tmp_path: Path) -> None:
    ran = CliRunner().invoke(main, ["snapshot", "restore", str(tmp_path)])
    assert ran.exit_code == 1
    assert "holds no backup" in ran.output


def test_keep_deletes_nothing_that_is_no_backup(tmp_path: Path) -> None:
    from commands.cli.backup import _backups

    for name in ("2026-01-01T000000Z", "2026-01-02T000000Z", "notes", ".part"):
        (tmp_path / name).mkdir()
    assert [path.name for path in _backups(tmp_path)] == [
        "2026-01-01T000000Z",
        "2026-01-02T000000Z",
    ]


@pytest.mark.parametrize("keep", ["0", "-1"])
def test_keep_of_none_is_refused(tmp_path: Path, keep: str) -> None:
    assert (
        CliRunner().invoke(main, ["snapshot", "backup", str(tmp_path), "--keep", keep]).exit_code
        == 2
    )
