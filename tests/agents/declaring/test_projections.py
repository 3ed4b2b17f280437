"""A router with a projection of its own: declared once, and kept, whoever moves its state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.declaring.configuration import declaration_of
from agents.ports import Encoder, Prompt
from router_state.config import ProjectionRef
from router_state.state import portable
from streams.encoder.projection import Projection
from streams.settings import Settings
from tests.agents.crashing import CONTEXT, HOME, Log, reasons, routes
from tests.audit_world import router
from tests.memory_worker import MemoryWorker

OWN = Projection.identity(128).checksum


def saved(folder: Path, name: str, *, components: int = 4, width: int = 128) -> dict[str, str]:
    """Write a projection into a folder; return how a declaration refers to it."""
    rng = np.random.default_rng(len(name))
    made = Projection.fit(rng.normal(size=(200, width)), components)[0]
    return {"ref": name, "sha256": made.save(folder / name)}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(prefix="pb.", app_id="crash", partitions=1, priors_path=tmp_path)


class Encoding:
    """A worker's encoder that notes by which projection it is asked."""

    def __init__(self) -> None:
        self.asked: list[Prompt] = []

    async def __call__(self, prompts: list[Prompt]) -> list[Any]:
        self.asked += prompts
        return [np.array(CONTEXT) for _ in prompts]


async def started(settings: Settings, before: MemoryWorker | None = None) -> MemoryWorker:
    """Return a worker whose own projection is OWN, of other dimensions than the router's."""
    worker = MemoryWorker(settings, [0])
    worker.encode_with(Encoder(Encoding(), {129: OWN}))
    await worker.start(before)
    return worker


def encoding_of(worker: MemoryWorker) -> Encoding:
    encoder = worker.partitions.ports.encoder
    assert encoder is not None and isinstance(encoder.encode, Encoding)
    return encoder.encode


def projection_of(worker: MemoryWorker) -> ProjectionRef | None:
    engine = worker[0].routers.engine(HOME)
    assert engine is not None
    return engine.state.config.projection


async def test_prompts_are_encoded_by_the_projection_that_the_router_declares(
    settings: Settings, tmp_path: Path
) -> None:
    worker, log, named = await started(settings), Log(), saved(tmp_path, "law")
    await worker.take("routers", [log.event("routers", router(HOME, projection=named))])
    await worker.take("requests", [log.event("requests", {"request_id": "r", "prompt": "Hi"})])
    assert [route["request_id"] for route in routes(worker)] == ["r"]
    encoding = encoding_of(worker)
    assert encoding.asked == [("Hi", ProjectionRef(**named))]


async def test_a_router_without_one_gets_that_of_its_size_whichever_sizes_the_worker_has(
    settings: Settings,
) -> None:
    worker, log = await started(settings), Log()
    prompt = {"request_id": "r", "prompt": "Hi"}
    await worker.take("routers", [log.event("routers", router(HOME))])
    await worker.take("requests", [log.event("requests", prompt)])
    assert reasons(worker) == ["wrong_context"]
    worker.encode_with(Encoder(encoding_of(worker), {129: OWN, len(CONTEXT): "whole"}))
    await worker.take("requests", [log.event("requests", {**prompt, "request_id": "s"})])
    assert [route["request_id"] for route in routes(worker)] == ["s"]
    encoding = encoding_of(worker)
    assert encoding.asked == [("Hi", len(CONTEXT))]


async def test_a_projection_that_is_not_at_hand_as_declared_is_refused_with_its_reason(
    settings: Settings, tmp_path: Path
) -> None:
    worker, log = await started(settings), Log()
    good = saved(tmp_path, "law")
    wide = saved(tmp_path, "wide", components=7)
    foreign = saved(tmp_path, "foreign", width=384)
    for named in (
        {**good, "ref": "nowhere"},
        {**good, "ref": "../law"},
        {**good, "sha256": "0" * 64},
        wide,
        foreign,
    ):
        await worker.take("routers", [log.event("routers", router(HOME, projection=named))])
    assert reasons(worker) == ["wrong_projection"] * 5
    assert HOME not in worker[0].routers
    unset = await started(settings.model_copy(update={"priors_path": None}))
    await unset.take("routers", [log.event("routers", router(HOME, projection=good))])
    assert reasons(unset) == ["wrong_projection"]


async def test_a_router_keeps_the_projection_that_it_was_created_with(
    settings: Settings, tmp_path: Path
) -> None:
    worker, log = await started(settings), Log()
    law, other = saved(tmp_path, "law"), saved(tmp_path, "other")
    await worker.take("routers", [log.event("routers", router(HOME, projection=law))])
    for changed in ({"projection": other}, {}):
        await worker.take("routers", [log.event("routers", router(HOME, **changed))])
    assert reasons(worker) == ["wrong_projection"] * 2
    assert projection_of(worker) == ProjectionRef(**law)
    (tmp_path / "renamed").symlink_to(tmp_path / "law")
    moved = {**law, "ref": "renamed"}
    await worker.take("routers", [log.event("routers", router(HOME, projection=moved))])
    assert projection_of(worker) == ProjectionRef(**moved)


async def test_a_router_may_name_the_projection_that_its_worker_gave_it_already(
    settings: Settings, tmp_path: Path
) -> None:
    worker, log, law = await started(settings), Log(), saved(tmp_path, "law")
    await worker.take("routers", [log.event("routers", router(HOME))])
    named = log.event("routers", router(HOME, projection=law))
    await worker.take("routers", [named])
    assert reasons(worker) == ["wrong_projection"]
    worker.encode_with(Encoder(encoding_of(worker), {5: law["sha256"]}))
    await worker.take("routers", [log.event("routers", router(HOME, projection=law))])
    assert projection_of(worker) == ProjectionRef(**law)


async def test_the_next_worker_knows_it(settings: Settings, tmp_path: Path) -> None:
    worker, log, law = await started(settings), Log(), saved(tmp_path, "law")
    await worker.take("routers", [log.event("routers", router(HOME, projection=law))])
    assert projection_of(await started(settings, worker)) == ProjectionRef(**law)


async def test_a_snapshot_carries_it_into_the_declaration_of_its_import(
    settings: Settings, tmp_path: Path
) -> None:
    worker, log, law = await started(settings), Log(), saved(tmp_path, "law")
    await worker.take("routers", [log.event("routers", router(HOME, projection=law))])
    engine = worker[0].routers.engine(HOME)
    assert engine is not None
    file = portable.pack(engine.state, {})
    assert declaration_of(portable.unpack(file).state.config, "copy")["projection"] == law
