"""A worker that stops, dies or starts with a backlog: nothing lost, nothing twice, the state that
of one that never did.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents.table import keys
from tests.chaos.recompute import Recomputation, differences
from tests.integration.service import (
    SOURCES,
    RunningService,
    cost,
    request,
    reward,
    router,
    running_service,
)

HOME = "acme.chat"


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Run one worker."""
    async with running_service(kafka, tmp_path, partitions=4) as running:
        await running.ready(running.worker(instance="one"))
        yield running


def decided(service: RunningService) -> set[tuple[str, str]]:
    return {(route["router_id"], route["request_id"]) for route in service.routes()}


def assert_decided_once(service: RunningService, total: int) -> None:
    """Every request has one decision; what was said twice after a crash is the same, and only what
    was asked twice is a repeat.
    """
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for route in service.routes():
        at = (route["router_id"], route["request_id"])
        # The steps that led to a decision are kept of the last ones only, and a late repeat lacks
        # both fields; so are candidates, from which the fallbacks follow.
        for name in ("request", "since"):
            route["applied"].pop(name, None)
        route |= {"candidates": None, "fallbacks": None}
        if route["repeat"]:
            assert {**first[at], "repeat": True} == route
        elif at in first:
            assert first[at] == route
        else:
            first[at] = route
    assert len(first) == total
    seqs: dict[str, list[int]] = {}
    for (router_id, _), route in first.items():
        seqs.setdefault(router_id, []).append(route["seq"])
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in seqs.values())


async def assert_recomputed(service: RunningService) -> None:
    """The state in the changelog is, to the bit, the one of a worker that never crashed."""
    settings = service.settings
    changelog = await service.log_of(settings.changelog)
    sources = {name: await service.log_of(settings.topic(name)) for name in SOURCES}
    for number, partition in (await service.partitions()).items():
        here = {
            name: {record.offset: record for record in log[number]} for name, log in sources.items()
        }
        expected = await Recomputation(settings, number, here).run(changelog[number])
        assert not differences(partition.records, expected)


async def test_graceful_restart_repeats_nothing(service: RunningService) -> None:
    await service.send("routers", router(HOME))
    for number in range(50):
        await service.post("requests", request(HOME, f"r-{number}", seed=number))
    await service.until(lambda: len(service.routes()) == 50, "fifty decisions")
    service.workers[0].terminate()
    await service.until(lambda: not service.workers[0].running, "an orderly end", poll=False)
    assert service.workers[0].process.returncode == 0
    await service.ready(service.worker(instance="one"))
    await service.send("requests", request(HOME, "after"))
    await service.until(lambda: service.route("after"), "the next decision")
    assert sorted(route["seq"] for route in service.routes()) == list(range(1, 52))


async def test_a_dead_letter_that_was_delivered_before_a_stop_is_not_written_again(
    service: RunningService,
) -> None:
    await service.send("requests", request("nobody", "r-1"))
    await service.until(service.dead_letters, "a dead letter")
    service.workers[0].terminate()
    await service.until(lambda: not service.workers[0].running, "an orderly end", poll=False)
    assert service.workers[0].process.returncode == 0
    await service.ready(service.worker(instance="one"))
    home = service.beside("nobody")
    await service.send("requests", request(home, "r-2"))
    await service.until(lambda: len(service.dead_letters()) == 2, "the next dead letter")
    assert len(service.records["dlq"]) == 2


async def test_killed_worker_loses_nothing_and_counts_nothing_twice(
    service: RunningService,
) -> None:
    homes = [f"home-{number}" for number in range(8)]
    profiles = ("paper", "live")
    for number, home in enumerate(homes):
        await service.send("routers", router(home, profile=profiles[number % 2]))
    total = 1200
    for number in range(total):
        home, request_id = homes[number % len(homes)], f"r-{number}"
        await service.post("requests", request(home, request_id, seed=number))
        await service.post("costs", cost(home, request_id, 1e-4 * (1 + number % 7)))
        await service.post("rewards", reward(home, request_id, (number % 10) / 10))
        if number % 20 == 0:
            await service.post("requests", request(home, request_id, seed=number + 1))
            await service.post("costs", cost(home, request_id, 1e-4 * (1 + number % 7)))
            await service.post("rewards", reward(home, request_id, 1.0, source="human"))
    for round_ in range(3):
        await service.until(
            lambda done=(round_ + 1) * 250: len(service.routes()) >= done, "some decisions"
        )
        service.workers[-1].kill()
        service.worker(instance="one")

    def finished() -> bool:
        shown = [service.lambda_of(home) for home in homes]
        return all(
            one.get("settled") == one.get("rewards_applied") == total // len(homes) for one in shown
        )

    await service.until(finished, "everything")
    # Of two topics a consumer may have the later record first.
    await service.until(lambda: len(decided(service)) >= total, "every decision")
    assert_decided_once(service, total)
    assert not service.dead_letters()
    await assert_recomputed(service)


async def test_request_that_waits_for_its_router_outlives_its_worker(
    kafka: str, tmp_path: Path
) -> None:
    async with running_service(
        kafka, tmp_path, partitions=4, PB_UNKNOWN_ROUTER_WAIT="60"
    ) as service:
        worker = await service.ready(service.worker(instance="one"))
        beside = service.beside(HOME)
        await service.send("routers", router(beside))
        await service.until(lambda: service.lambda_of(beside), "another router of the partition")
        await service.send("requests", request(HOME, "early"))
        await service.send("requests", request(beside, "known"))
        await service.until(lambda: service.route("known"), "a decision after it")
        worker.kill()
        parked = [
            key
            for partition in (await service.partitions()).values()
            for key in partition.records
            if key[:1] == keys.PARKED
        ]
        assert len(parked) == 1
        await service.ready(service.worker(instance="one"))
        await service.send("routers", router(HOME))
        await service.until(lambda: service.route("early"), "its decision")
        await service.send("requests", request(HOME, "late"))
        await service.until(lambda: service.route("late"), "the next decision")
        assert_decided_once(service, 3)
        await assert_recomputed(service)


async def test_backlog_of_bills_and_rewards_waits_for_its_requests(
    kafka: str, tmp_path: Path
) -> None:
    settings = {
        "PB_PARKED_EVENTS": "50",
        "PB_ORPHAN_WAIT": "1",
        "PB_SOURCE_BUFFER_BYTES": "131072",
        "PB_UNKNOWN_ROUTER_WAIT": "30",
    }
    async with running_service(kafka, tmp_path, partitions=2, **settings) as service:
        await service.send("routers", router(HOME))
        total = 3000
        for number in range(total):
            await service.post("costs", cost(HOME, f"r-{number}", 0.001))
            await service.post("rewards", reward(HOME, f"r-{number}", 0.5))
        for number in range(total):
            await service.post("requests", request(HOME, f"r-{number}", seed=number))
        await service.ready(service.worker())
        await service.until(
            lambda: service.lambda_of(HOME).get("rewards_applied") == total, "all rewards"
        )
        await service.until(lambda: service.lambda_of(HOME).get("settled") == total, "all bills")
        assert not service.dead_letters()
