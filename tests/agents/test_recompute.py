"""The recomputation that the tests compare a worker's state with follows what the worker did."""

from types import SimpleNamespace
from typing import Any

import pytest

from agents import declare_routers
from streams.state.partition import EPOCH
from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log
from tests.audit_world import router
from tests.chaos.recompute import Recomputation, differences
from tests.memory_worker import MemoryWorker


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


async def test_the_event_that_was_decided_is_recomputed_though_an_earlier_one_of_its_id_was_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def later(*_: Any) -> None:
        """Let the waiting requests wait: another batch comes first."""

    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    waiting = log.event("requests", {"request_id": "r", "context": CONTEXT})
    overtaking = log.event("requests", {"request_id": "r", "context": [0.9, *CONTEXT[1:]]})
    declared = log.event("routers", router(HOME))
    rewards = [log.event("rewards", {"request_id": "r", "reward": 1, "source": "judge"})]
    await worker.take("requests", [waiting])
    monkeypatch.setattr(declare_routers, "route_waiting", later)
    await worker.take("routers", [declared])
    await worker.take("requests", [overtaking])
    await worker.take("rewards", rewards)
    expected = await recomputed(
        worker, {"requests": [waiting, overtaking], "routers": [declared], "rewards": rewards}
    )
    assert not differences(worker.table(0), expected)
    worker.states.partition(0).records.popitem()
    assert differences(worker.table(0), expected)
