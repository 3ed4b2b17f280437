"""Bills and labels that come before their request: they wait for it, and the wait ends."""

from typing import Any

import pytest

from agents.requests.book_feedback import LearnFromRewards, PaceSpend
from tests.agents.crashing import CONTEXT, HOME, reasons, routes, started
from tests.memory_worker import MemoryWorker

HOUR = 3600.0
BILL = {"request_id": "r", "cost_usd": 0.001}
LABEL = {"request_id": "r", "reward": 0.5, "source": "human"}


def unmatched(worker: MemoryWorker) -> float:
    """Return the dollars of bills whose request never came."""
    engine = worker.partitions[0].routers.engine(HOME)
    assert engine is not None
    return engine.state.unmatched_cost_usd


@pytest.mark.parametrize(
    ("topic", "event", "counted"),
    [(PaceSpend.name, BILL, "bill_applied"), (LearnFromRewards.name, LABEL, "reward_applied")],
)
async def test_feedback_that_overtook_its_request_is_applied_once_right_after_the_decision(
    topic: str, event: dict[str, Any], counted: str
) -> None:
    worker, log = await started()
    await worker.take(topic, [log.event(topic, event)])
    assert (worker.counted["parked"], worker.counted[counted]) == (1, 0)
    await worker.take("requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})])
    assert (len(routes(worker)), worker.counted[counted]) == (1, 1)
    worker.clock.now += HOUR
    await worker.pass_time()
    assert (reasons(worker), worker.counted[counted]) == ([], 1)


async def test_a_wait_in_vain_books_the_dollars_of_a_bill_and_nothing_of_a_request() -> None:
    worker, log = await started()
    await worker.take("costs", [log.event("costs", BILL)])
    stranger = {"request_id": "s", "context": CONTEXT, "router_id": "nobody"}
    await worker.take("requests", [log.event("requests", stranger, key=b"nobody")])
    worker.clock.now += HOUR
    await worker.pass_time()
    assert sorted(reasons(worker)) == ["orphan_cost", "unknown_router"]
    assert unmatched(worker) == BILL["cost_usd"]


async def test_of_two_bills_of_a_request_that_never_comes_only_the_later_revision_is_booked() -> (
    None
):
    worker, log = await started()
    for revision, usd in ((1, 0.001), (2, 0.004), (1, 0.009)):
        event = {"request_id": "r", "cost_usd": usd, "revision": revision}
        await worker.take("costs", [log.event("costs", event)])
    worker.clock.now += HOUR
    await worker.pass_time()
    assert reasons(worker) == ["orphan_cost"]
    assert unmatched(worker) == 0.004
