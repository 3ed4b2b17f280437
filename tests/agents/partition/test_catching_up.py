"""A worker that comes back to a backlog: what waits goes on waiting for what may still come, and
everybody hears of it again.
"""

import json
from typing import Any

import pytest

from tests.agents.crashing import (
    CONTEXT,
    HOME,
    SETTINGS,
    reasons,
    routes,
    started,
)
from tests.memory_worker import MemoryWorker

HOUR = 3600.0


def shown(worker: MemoryWorker) -> list[dict[str, Any]]:
    """Return what was published of routers."""
    return [
        json.loads(value or b"null") for topic, _, value, _ in worker.said if topic == "pb.lambda"
    ]


@pytest.mark.parametrize(
    "end", [1, None], ids=["a request is on the log", "the end of the log is not known"]
)
async def test_a_bill_waits_beyond_its_time_while_its_request_may_be_on_the_log(
    end: int | None,
) -> None:
    worker, log = await started()
    worker.ends["requests"] = end
    await worker.take("costs", [log.event("costs", {"request_id": "r", "cost_usd": 0.001})])
    worker.clock.now += HOUR
    await worker.pass_time()
    assert reasons(worker) == []
    request = {"request_id": "r", "context": CONTEXT}
    await worker.take(
        "requests", [log.event("requests", request, timestamp=worker.clock.now * 1000)]
    )
    await worker.pass_time()
    assert (len(routes(worker)), reasons(worker)) == (1, [])
    assert shown(worker)[-1]["settled"] == 1


async def test_a_bill_whose_request_is_not_on_the_log_is_an_orphan_when_its_time_is_up() -> None:
    worker, log = await started()
    worker.ends["requests"] = 0
    await worker.take("costs", [log.event("costs", {"request_id": "r", "cost_usd": 0.001})])
    await worker.pass_time()
    assert reasons(worker) == []
    worker.clock.now += HOUR
    await worker.pass_time()
    assert reasons(worker) == ["orphan_cost"]


async def test_every_router_is_published_again_after_a_recovery_and_then_only_when_it_changes() -> (
    None
):
    worker, _ = await started()
    await worker.pass_time()
    assert [router["router_id"] for router in shown(worker)] == [HOME]
    after = MemoryWorker(SETTINGS, [0])
    await after.start(worker)
    await after.pass_time()
    assert [router["router_id"] for router in shown(after)] == [HOME]
    await after.pass_time()
    assert len(shown(after)) == 1
