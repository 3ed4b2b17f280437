"""A worker that comes back finds requests and the declaration of their router on the log."""

from __future__ import annotations

import asyncio
import json

from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log
from tests.audit_world import router
from tests.memory_worker import MemoryWorker

MANY = 20


async def test_requests_wait_for_a_declaration_on_the_log_however_few_may_be_parked() -> None:
    few = SETTINGS.model_copy(update={"parked_events": 2})
    worker, log = MemoryWorker(few, [0]), Log()
    await worker.start()
    declared = log.event("routers", router(HOME), key=HOME.encode())
    asked = [
        log.event(
            "requests",
            {"router_id": HOME, "request_id": f"r-{number}", "context": CONTEXT},
            key=HOME.encode(),
        )
        for number in range(MANY)
    ]
    worker.ends["routers"] = declared.offset + 1
    async with asyncio.TaskGroup() as reading:
        reading.create_task(worker.take("requests", asked))
        await asyncio.sleep(0.1)
        assert not worker.said
        reading.create_task(worker.take("routers", [declared]))
    answers = [
        json.loads(value or b"")["seq"]
        for topic, _, value, _ in worker.said
        if topic == "pb.routes"
    ]
    assert answers == list(range(1, MANY + 1))
