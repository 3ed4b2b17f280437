"""A worker that dies between making a batch durable and answering it: the next one says what was
left to say, once.
"""

import asyncio
from typing import Any

import numpy as np
import pytest

from agents.ports import Encoder, Prompt
from agents.upkeep.waits_end import end_waits
from tests.agents.crashing import (
    CONTEXT,
    HOME,
    SETTINGS,
    Log,
    crash_and_read_again,
    reasons,
    routes,
    started,
)
from tests.audit_world import router
from tests.memory_worker import MemoryWorker


async def test_decision_is_said_after_a_crash() -> None:
    worker, log = await started()
    after = await crash_and_read_again(
        worker, "requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})]
    )
    assert [(route["seq"], route["repeat"]) for route in routes(after)] == [(1, False)]
    assert reasons(after) == []


REFUSED = [
    (
        "requests",
        {"request_id": "r", "context": CONTEXT, "allowed_models": ["none"]},
        "no_allowed_model",
    ),
    (
        "rewards",
        {"request_id": "r", "reward": 1, "source": "judge", "observed_at": "2027-01-15T08:30:00Z"},
        "from_the_future",
    ),
    ("routers", {"models": {}, "dimensions": 7}, "invalid_config"),
]


@pytest.mark.parametrize(("topic", "event", "reason"), REFUSED, ids=[case[2] for case in REFUSED])
async def test_refusal_that_depends_on_state_or_clock_is_said_once_after_a_crash(
    topic: str, event: dict[str, Any], reason: str
) -> None:
    worker, log = await started()
    after = await crash_and_read_again(worker, topic, [log.event(topic, event)])
    assert reasons(after) == [reason]
    await after.pass_time()
    assert reasons(after) == [reason]


async def test_stale_declaration_is_refused_once_after_a_crash() -> None:
    worker, log = await started()
    stale = log.event("routers", router(HOME), headers=[("pb.based_on", b"77")])
    after = await crash_and_read_again(worker, "routers", [stale])
    assert reasons(after) == ["stale_config"]


async def test_request_refused_before_its_id_was_decided_is_not_answered_again_after_a_crash() -> (
    None
):
    worker, log = await started()
    refused = log.event(
        "requests", {"request_id": "r", "context": CONTEXT, "allowed_models": ["none"]}
    )
    decided = log.event("requests", {"request_id": "r", "context": CONTEXT})
    await worker.take("requests", [refused, decided])
    assert (len(routes(worker)), reasons(worker)) == (1, ["no_allowed_model"])
    after = MemoryWorker(SETTINGS, [0])
    await after.start(worker)
    await after.take("requests", [refused, decided])
    assert [(route["request_id"], route["repeat"]) for route in routes(after)] == [("r", False)]


async def test_waiting_request_outlives_a_crash_that_the_changelog_does_not_know_of() -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take(
        "requests",
        [log.event("requests", {"request_id": name, "context": CONTEXT}) for name in ("r", "s")],
    )
    assert not any(b"context" in (value or b"") for _, _, value, _, _ in worker.changelog)
    after = MemoryWorker(SETTINGS, [0])
    await after.start(worker)
    await after.take("routers", [log.event("routers", router(HOME))])
    assert [(route["request_id"], route["seq"]) for route in routes(after)] == [("r", 1), ("s", 2)]
    await after.pass_time()
    assert not any(key.startswith(b"p") for key in after.table(0))


@pytest.mark.parametrize("is_gone", [False, True])
async def test_dead_letter_after_a_crash_has_the_bytes_of_its_request_if_they_are_still_on_the_log(
    is_gone: bool,
) -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    asked = log.event("requests", {"request_id": "r", "context": CONTEXT})
    await worker.take("requests", [asked])
    if is_gone:
        worker.requests.clear()
    after = MemoryWorker(SETTINGS, [0])
    after.clock.now = worker.clock.now + 3600.0
    await after.start(worker)
    await after.pass_time()
    assert reasons(after) == ["unknown_router"]
    assert [value for topic, _, value, _ in after.said if topic == "pb.dlq"] == [
        None if is_gone else asked.value
    ]


async def test_request_that_waits_and_is_gone_from_the_log_is_refused_though_its_router_comes() -> (
    None
):
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take("requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})])
    worker.requests.clear()
    after = MemoryWorker(SETTINGS, [0])
    await after.start(worker)
    await after.take("routers", [log.event("routers", router(HOME))])
    await after.pass_time()
    assert (routes(after), reasons(after)) == ([], ["unknown_router"])
    await after.pass_time()
    assert not any(key.startswith(b"p") for key in after.table(0))


async def test_request_whose_router_came_in_time_is_not_refused_while_it_is_answered() -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take("requests", [log.event("requests", {"request_id": "r", "context": CONTEXT})])
    worker.gate = asyncio.Event()
    declaring = asyncio.create_task(worker.take("routers", [log.event("routers", router(HOME))]))
    await worker.at_gate.wait()
    worker.clock.now += 3600.0
    await worker.partitions.each(end_waits)
    worker.gate.set()
    await declaring
    await worker.pass_time()
    assert (len(routes(worker)), reasons(worker)) == (1, [])
    assert not any(key.startswith(b"p") for key in worker.table(0))


async def test_a_prompt_whose_router_is_declared_while_others_are_encoded_is_answered() -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router("other"), key=b"other")])
    declared = log.event("routers", router(HOME))
    encoded: list[str] = []

    async def encode(prompts: list[Prompt]) -> list[Any]:
        encoded.extend(text for text, _ in prompts)
        if HOME not in worker.partitions[0].routers:
            await worker.take("routers", [declared])
        return [np.array(CONTEXT) for _ in prompts]

    worker.encode_with(Encoder(encode, {len(CONTEXT): ""}))
    asked = [
        log.event(
            "requests", {"router_id": "other", "request_id": "a", "prompt": "first"}, key=b"other"
        ),
        log.event("requests", {"request_id": "b", "prompt": "second"}),
    ]
    await worker.take("requests", asked)
    assert encoded == ["first", "second"]
    assert [route["request_id"] for route in routes(worker)] == ["a", "b"]
    await worker.pass_time()
    assert reasons(worker) == []
    assert not any(key.startswith(b"p") for key in worker.table(0))
