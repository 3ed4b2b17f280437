"""A topic that is really compacted: what is in force of a router stays readable, and its router can
be changed.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from doors.console.bus import open_bus
from streams.settings import Settings
from tests.integration.commands import (
    PRICES,
    add_two,
    done,
    done_json,
    new_service,
    run,
    running_worker,
)

EAGER = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "200",
    "delete.retention.ms": "100",
}
PATIENCE = 90.0


@pytest.fixture
def eager(kafka: str) -> Settings:
    """Return the settings of a service whose `pb.routers` is compacted as soon as possible."""
    made = new_service(kafka, "force")

    async def hasten() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
        await admin.start()
        try:
            await admin.alter_configs(
                [ConfigResource(ConfigResourceType.TOPIC, made.topic("routers"), EAGER)]
            )
        finally:
            await admin.close()

    asyncio.run(hasten())
    return made


async def offsets_of(settings: Settings, router_id: str) -> list[int]:
    """Return where records of a router stand on `pb.routers`."""
    async with open_bus(settings, "routers") as bus:
        return [
            record.offset
            async for record in bus.backwards("routers", router_id)
            if record.key == router_id.encode()
        ]


def compact(settings: Settings, *router_ids: str) -> None:
    """Wait until only the last record of each router is left; others are written, as a segment in
    use is never compacted.
    """
    deadline = time.monotonic() + PATIENCE
    while any(len(asyncio.run(offsets_of(settings, router_id))) > 1 for router_id in router_ids):
        assert time.monotonic() < deadline
        asyncio.run(_roll(settings))


async def _roll(settings: Settings) -> None:
    async with open_bus(settings, "routers") as bus:
        for number in range(30):  # all partitions
            await bus.send_bytes(
                "routers",
                f"other-{number}",
                f'{{"router_id": "other-{number}", "models": {{}}}}'.encode(),
            )
        await asyncio.sleep(0.2)


def test_refused_declarations_lock_nobody_out_once_the_topic_is_compacted(
    eager: Settings, tmp_path: Path
) -> None:
    none = {"PB_ENCODER_BACKEND": "none"}
    with running_worker(eager, environment=none, log=tmp_path / "first.log"):
        add_two(eager, "typo")
        add_two(eager, "queued")
        assert (
            run(eager, "models", "add", "odd", *PRICES, "--like", "nobody", router="typo").exit_code
            == 1
        )
        compact(eager, "typo")
        done(eager, "budget", "set", "0.002", router="typo")
        assert set(done_json(eager, "models", "list", router="typo")) == {"small", "large"}
    for budget in ("0.003", "0.004"):
        late = run(eager, "budget", "set", budget, "--timeout", "0.3", router="queued")
        assert late.exit_code == 1
        assert "stays queued" in late.output
    compact(eager, "queued", "typo")
    assert "start one" in run(eager, "models", "list", router="queued").output
    with running_worker(eager, environment=none, log=tmp_path / "second.log"):
        done(eager, "budget", "set", "0.005", router="queued")
        assert set(done_json(eager, "models", "list", router="queued")) == {"small", "large"}
        budgets = {
            row["router_id"]: row["budget_usd_per_request"]
            for row in done_json(eager, "routers", "list")
        }
        assert (budgets["queued"], budgets["typo"]) == (0.005, 0.002)
        assert done_json(eager, "audit")["violations"] == {}
