"""The recomputation that the tests compare a worker's state with follows what the worker did."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from agents.declaring import declare_routers
from agents.requests.route_requests import route_waiting
from streams.changelog_format import EPOCH
from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log
from tests.audit_world import router
from tests.chaos.recompute import Recomputation, differences
from tests.memory_worker import MemoryWorker

ROUTES = SETTINGS.topic("routes")


async def recomputed(worker: MemoryWorker, sources: dict[str, list[Any]]) -> dict[bytes, bytes]:
    """Return the table that the changelog and the source events lead to."""
    changelog = [
        SimpleNamespace(key=key, value=value, headers=[(EPOCH, b"%d" % epoch)], timestamp=at * 1000)
        for _, key, value, epoch, at in worker.changelog
    ]
    by_offset = {
        topic: {event.offset: event for event in events} for topic, events in sources.items()
    }
    return await Recomputation(SETTINGS, 0, by_offset).run(changelog)


async def test_a_request_behind_one_that_still_waits_is_decided_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def later(*_: Any) -> None:
        """Let the waiting requests wait: another batch comes first."""

    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    requests = [
        log.event("requests", {"request_id": name, "context": CONTEXT})
        for name in ("first", "behind", "last")
    ]
    declared = log.event("routers", router(HOME))
    rewards = [log.event("rewards", {"request_id": "behind", "reward": 1, "source": "judge"})]
    await worker.take("requests", requests[:1])
    with monkeypatch.context() as patched:
        patched.setattr(declare_routers, "route_waiting", later)
        await worker.take("routers", [declared])
    await worker.take("requests", requests[1:2])
    assert decided(worker) == []
    await route_waiting([HOME], worker[0])
    await worker.take("requests", requests[2:])
    assert decided(worker) == [("first", 1), ("behind", 2), ("last", 3)]
    await worker.take("rewards", rewards)
    expected = await recomputed(
        worker, {"requests": requests, "routers": [declared], "rewards": rewards}
    )
    assert not differences(worker.table(0), expected)
    worker.states.partition(0).records.popitem()
    assert differences(worker.table(0), expected)


def decided(worker: MemoryWorker) -> list[tuple[str, int]]:
    """Return the decisions that a worker has published: ids and places, in order."""
    said = [orjson.loads(value or b"") for topic, _, value, _ in worker.said if topic == ROUTES]
    return [(one["request_id"], one["seq"]) for one in said]
