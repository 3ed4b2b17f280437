"""A router with a hundred thousand remembered requests goes in portions; a crash in the middle is
gone on from.
"""

import pytest

from agents.table import keys
from router_state.state import invariants, record_bytes
from streams.settings import Settings
from tests.agents.crashing import CONTEXT, HOME, SMALL, Dying, Log, reasons, routes
from tests.audit_world import router
from tests.memory_worker import Left, MemoryWorker

SETTINGS = Settings(prefix="pb.", app_id="crash", partitions=1)
MANY = 12_000
"""As many as take several small batches."""


async def crowded(requests: int, settings: Settings = SMALL) -> tuple[Dying, Log]:
    """Return a worker whose one router remembers this many requests, all like its only true one."""
    worker, log = Dying(settings), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    await worker.take("requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})])
    table = worker.table(0)
    record, context = (table[keys.key(kind, HOME, "r")] for kind in (keys.REQUEST, keys.CONTEXT))
    for start in range(0, requests, 20_000):
        partition = worker.states.partition(0)
        with partition.writing():
            for number in range(start, min(start + 20_000, requests)):
                partition.put(keys.key(keys.REQUEST, HOME, f"request-{number:030}"), record)
                partition.put(keys.key(keys.CONTEXT, HOME, f"request-{number:030}"), context)
        await partition.write(partition.take())
    after = Dying(settings)
    await after.start(worker)
    return after, log


def left(worker: MemoryWorker) -> int:
    """Return how many records the table holds beside its watermarks."""
    return sum(key[:1] != keys.WATERMARKS for key in worker.table(0))


@pytest.mark.parametrize(("requests", "settings"), [(100_000, SETTINGS), (MANY, SMALL)])
async def test_a_router_goes_in_batches_that_fit(requests: int, settings: Settings) -> None:
    worker, log = await crowded(requests, settings)
    await worker.take("routers", [log.event("routers", None)])
    assert left(worker) == 0
    assert max(worker.sizes) < settings.changelog_batch_bytes
    assert len(worker.sizes) > 3


@pytest.mark.parametrize("commits", [1, 2])
async def test_a_crash_in_the_middle_is_gone_on_from(commits: int) -> None:
    worker, log = await crowded(MANY)
    gone = log.event("routers", None)
    worker.commits_left = commits
    with pytest.raises(Left):
        await worker.take("routers", [gone])
    after = Dying()
    await after.start(worker)
    assert left(after) > 0 and HOME not in after.partitions[0].routers
    await after.take("routers", [gone])
    assert left(after) == 0


async def test_a_crash_is_gone_on_from_even_if_nothing_is_declared_any_more() -> None:
    worker, log = await crowded(MANY)
    worker.commits_left = 1
    with pytest.raises(Left):
        await worker.take("routers", [log.event("routers", None)])
    after = Dying()
    await after.start(worker)
    await after.pass_time()
    assert left(after) == 0


async def test_a_router_that_comes_again_finds_nothing_of_the_one_before() -> None:
    worker, log = await crowded(MANY)
    worker.commits_left = 1
    gone, again = log.event("routers", None), log.event("routers", router(HOME))
    with pytest.raises(Left):
        await worker.take("routers", [gone, again])
    after = Dying()
    await after.start(worker)
    await after.take("routers", [gone, again])
    await after.take("requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})])
    assert [(route["request_id"], route["seq"], route["repeat"]) for route in routes(after)] == [
        ("r", 1, False)
    ]
    engine = after.partitions[0].routers.engine(HOME)
    assert engine is not None and list(engine.records) == ["r"]
    invariants.check(engine.state, engine.records)
    assert record_bytes.unpack_record(after.table(0)[keys.key(keys.REQUEST, HOME, "r")]).seq == 1
    assert keys.key(keys.CONTEXT, HOME, "r") in after.table(0)
    assert reasons(after) == []


def paced(worker: MemoryWorker) -> list[bytes | None]:
    """Return what was said of the router on `pb.lambda`."""
    return [
        value
        for topic, key, value, _ in worker.said
        if topic == "pb.lambda" and key == HOME.encode()
    ]


async def test_a_tombstone_says_that_a_router_is_gone_and_its_next_life_is_said_after_it() -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    await worker.pass_time()
    await worker.take("routers", [log.event("routers", None)])
    assert [value is None for value in paced(worker)] == [False, True]
    await worker.take("routers", [log.event("routers", router(HOME))])
    await worker.pass_time()
    assert [value is None for value in paced(worker)] == [False, True, False]


async def test_a_tombstone_that_a_crash_kept_back_is_said_by_the_next_worker() -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    await worker.pass_time()
    gone = log.event("routers", None)
    worker.mute = True
    with pytest.raises(Left):
        await worker.take("routers", [gone])
    after = MemoryWorker(SETTINGS, [0])
    await after.start(worker)
    await after.take("routers", [gone])  # it was not acked
    assert paced(after) == [None]
