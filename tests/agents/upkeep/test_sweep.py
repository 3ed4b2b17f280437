"""A sweep is small in bytes and holds nobody up, however many requests expire at once and however
many models there are.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from agents.table import keys
from agents.upkeep.sweep import REQUESTS_AT_ONCE, Sweep
from router_state.state import record_bytes
from streams.settings import Settings
from tests.agents.crashing import CONTEXT, HOME, Dying, Log
from tests.audit_world import router
from tests.memory_worker import MemoryWorker

SETTINGS = Settings(prefix="pb.", app_id="sweep", partitions=1, changelog_batch_bytes=2**20)
MANY = 3_000
MODELS = {
    f"model-{k:02}": {
        "input_price_per_m": 0.1 + k,
        "output_price_per_m": 0.2 + k,
        "onboarding_pulls": 0,
    }
    for k in range(64)
}


async def crowded(requests: int) -> Dying:
    """Return a worker whose one router of 64 models awaits this many bills."""
    worker, log = Dying(SETTINGS), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME, models=MODELS))])
    await worker.take("requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})])
    record = record_bytes.unpack_record(worker.table(0)[keys.key(keys.REQUEST, HOME, "r")])
    for start in range(1, requests, 100):
        table = worker.states.partition(0)
        with table.writing():
            for number in range(start, min(start + 100, requests)):
                record.seq = number + 1
                table.put(
                    keys.key(keys.REQUEST, HOME, f"r-{number:05}"), record_bytes.pack_record(record)
                )
        await table.write(table.take())
    after = Dying(SETTINGS)
    await after.start(worker)
    after.clock.now += 3600.0
    return after


class Slow:
    """A clock by which each look has taken long."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 0.02
        return self.now


async def test_requests_that_expire_at_once_are_written_in_batches_that_fit() -> None:
    worker = await crowded(MANY)
    worker.sizes.clear()
    await Sweep(worker.partitions).round()
    engine = worker.partitions[0].routers.engine(HOME)
    assert engine is not None and (engine.state.expired, engine.state.in_flight) == (MANY, 0)
    assert sum(worker.sizes) > SETTINGS.changelog_batch_bytes > max(worker.sizes)


async def test_others_have_their_turn_while_a_sweep_goes_on() -> None:
    worker = await crowded(MANY)
    written = len(worker.sizes)
    sweeping = asyncio.create_task(Sweep(worker.partitions, clock=Slow()).round())
    turns, moved = 0, [0]
    while not sweeping.done():
        await asyncio.sleep(0)
        turns += 1
        engine = worker.partitions[0].routers._engines.get(HOME)
        moved.append(0 if engine is None else engine.state.expired)
    assert moved[-1] == MANY
    assert max(later - before for before, later in pairwise(moved)) <= REQUESTS_AT_ONCE
    assert len(worker.sizes) - written >= MANY // REQUESTS_AT_ONCE


@pytest.mark.parametrize("interferes", [False, True])
async def test_a_router_that_remembers_much_is_unpacked_in_turns(interferes: bool) -> None:
    worker = await crowded(MANY)
    routers = worker[0].routers
    unpacking = asyncio.create_task(worker[0].unpack_ahead(HOME))
    await asyncio.sleep(0)
    assert not routers.is_unpacked(HOME) and not unpacking.done()
    if interferes:
        assert routers.engine(HOME) is not None
    await unpacking
    engine = routers.engine(HOME)
    assert engine is not None
    assert (engine.state.in_flight, next(iter(engine.records)), len(engine.records)) == (
        MANY,
        "r",
        MANY,
    )


async def test_after_a_start_a_group_unpacks_one_router() -> None:
    first, log = MemoryWorker(SETTINGS, [0]), Log()
    await first.start()
    names = ["one", "two", "three"]
    declared = [log.event("routers", router(name), key=name.encode()) for name in names]
    await first.take("routers", declared)
    worker = MemoryWorker(SETTINGS, [0])
    await worker.start(first)
    asked = [
        log.event(
            "requests",
            {"router_id": name, "request_id": f"{name}{number}", "context": CONTEXT},
            key=name.encode(),
        )
        for name in names
        for number in (1, 2)
    ]
    await worker.take("requests", asked)
    groups = [[m.key for m in group.batches[0].messages] for group in worker.finished]
    assert groups == [[b"one"] * 2, [b"two"] * 2, [b"three"] * 2]
