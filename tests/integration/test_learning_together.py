"""Routers of a family on two workers: a newcomer knows the models before its first request, what
was said is replayed, and one cluster's knowledge begins another family."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streams.settings import Settings
from studies.history.encoded import Contexts
from studies.history.kafka_history import KafkaHistory
from studies.history.merge import Merge
from studies.history.records import refused_offsets
from studies.history.rerun import Rerun
from studies.history.skipped import Skipped
from studies.history.verify import Verdict, verify
from tests.integration.commands import done, done_json, until
from tests.integration.service import RunningService, cost, request, reward, router, running_service

MEMBERS = [f"desk-{k}" for k in range(4)]
WORTH = {"llama": 0.3, "mistral": 0.9, "gemini": 0.5}


@pytest.fixture
async def service(kafka: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """Run two workers."""
    async with running_service(kafka, tmp_path, partitions=4) as running:
        for name in ("one", "two"):
            await running.ready(running.worker(instance=name))
        yield running


def family_of(service: RunningService, name: str) -> dict[str, Any]:
    """Return what a router says of its family."""
    return dict(service.lambda_of(name).get("family", {}))


async def live(service: RunningService, names: list[str], *, requests: int, first: int) -> None:
    """Let routers answer requests, and judge and bill the answers."""
    rng = np.random.default_rng(first)
    wanted = set()
    for number in range(first, first + requests):
        for name in names:
            await service.post("requests", request(name, f"{number}", seed=number))
            wanted.add((name, f"{number}"))
    await service.until(
        lambda: wanted <= {(one["router_id"], one["request_id"]) for one in service.routes()},
        "the decisions",
    )
    for one in service.routes():
        if (one["router_id"], one["request_id"]) in wanted and not one["repeat"]:
            ids = one["router_id"], one["request_id"]
            await service.post("costs", cost(*ids, 4e-4 * float(rng.uniform(0.8, 1.2))))
            value = min(max(WORTH[one["model"]] + 0.1 * float(rng.normal()), 0.0), 1.0)
            await service.post("rewards", reward(*ids, value))


async def test_a_newcomer_starts_from_what_the_others_have_learned(
    service: RunningService, tmp_path: Path
) -> None:
    for name in MEMBERS[:3]:
        await service.send("routers", router(name, family="support"))
    for turn in range(4):
        await live(service, MEMBERS[:3], requests=25, first=25 * turn)
        await asyncio.sleep(0.7)
    await service.until(
        lambda: all(family_of(service, name).get("models") for name in MEMBERS[:3]),
        "a prior of every member",
    )
    # One worker dies: the family is on the other one, or comes back with what it had heard.
    service.workers[0].kill()
    await service.send("routers", router("newcomer", family="support"))
    await live(service, ["newcomer"], requests=20, first=1000)
    routes = [one for one in service.routes() if one["router_id"] == "newcomer"]
    await service.until(lambda: bool(family_of(service, "newcomer").get("models")), "its prior")
    assert family_of(service, "newcomer")["members"] == 3
    chosen = [one["model"] for one in routes]
    assert chosen.count("mistral") > len(chosen) / 2
    # Another projection is refused with its reason.
    await service.post("routers", router("wide", family="support", dimensions=7))
    await service.until(lambda: service.reasons()["wrong_family"] == 1, "the refusal")
    assert set(service.reasons()) == {"wrong_family"}
    await asyncio.to_thread(show, service.settings, routes[-1]["request_id"], tmp_path)
    await service.send("routers", router("first", family="sales"))
    await service.until(lambda: bool(family_of(service, "first").get("models")), "its prior")
    for worker in service.workers[1:]:
        worker.terminate()
    verdict, skipped = await asyncio.to_thread(verified, service.settings)
    assert verdict.differences == {} and verdict.unprovable == {} and skipped.counts == {}
    assert verdict.identical == verdict.compared == 320


def told_families(settings: Settings) -> list[str]:
    """Return the families that a command knows."""
    return [one["family"] for one in done_json(settings, "families", "show")]


def show(settings: Settings, request_id: str, folder: Path) -> None:
    """Let commands show the family, and bring what it knows to another one."""
    shown = done(settings, "families", "show", "support")
    assert all(name in shown for name in ("desk-0", "newcomer", "mistral"))
    explained = done(settings, "explain", request_id, router="newcomer")
    assert "other routers of its family know of" in explained
    assert "family support: 3 others tell of their requests" in explained
    file = str(folder / "support.json")
    done(settings, "families", "export", "support", file)
    assert "desk-0" not in Path(file).read_text(encoding="utf-8")
    done(settings, "families", "import", file, "--family", "sales")
    until(lambda: "sales" in told_families(settings))


def verified(settings: Settings) -> tuple[Verdict, Skipped]:
    """Replay all decisions."""

    def no_encoder(*_: Any) -> Any:
        raise AssertionError("the history has contexts")

    skipped, verdict = Skipped(), Verdict()
    with KafkaHistory(settings) as history:
        refused = refused_offsets(history)
        for partition in history.partitions():
            rerun = Rerun(
                contexts=Contexts(no_encoder),
                rank_of=settings.source_rank,
                read_prior=no_encoder,
                skipped=skipped,
            )
            verify(Merge(history, partition, refused=refused, skipped=skipped), rerun, verdict)
    return verdict, skipped
