"""What `pbstream cost` and `reward` say of their own event, whatever else happens to the router."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from doors.console.bus import open_bus
from streams.log.service_topics import create_topics
from streams.settings import Settings
from tests.integration.commands import CONTEXT, add_two, done, done_json, run


def asked(worker: Settings, router: str, *ids: str) -> None:
    add_two(worker, router)
    for request_id in ids:
        done(worker, "request", "--context", "-", "--id", request_id, stdin=CONTEXT, router=router)


def outcome(worker: Settings, *words: str, router: str) -> Any:
    return done_json(worker, *words, router=router)["outcome"]


@contextmanager
def traffic(worker: Settings, router: str) -> Iterator[None]:
    """Let the router decide, so that its state changes all the time."""
    stop = Event()

    async def ask() -> None:
        async with open_bus(worker, "requests") as bus:
            while not stop.is_set():
                event = {
                    "router_id": router,
                    "request_id": uuid4().hex,
                    "context": json.loads(CONTEXT),
                }
                await bus.send_bytes("requests", router, json.dumps(event).encode())

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(asyncio.run, ask())
        try:
            yield
        finally:
            stop.set()
            asking.result()


def test_the_state_that_is_shown_contains_the_bill_whatever_else_changes_the_router(
    worker: Settings,
) -> None:
    asked(worker, "reports.busy", *map(str, range(4)))
    with traffic(worker, "reports.busy"):
        for number in range(4):
            told = done_json(worker, "cost", str(number), "0.001", router="reports.busy")
            assert (told["outcome"], told["state"]["settled"]) == ("booked", number + 1)
            told = done_json(worker, "reward", str(number), "0.5", router="reports.busy")
            assert (told["outcome"], told["state"]["rewards_applied"]) == ("booked", number + 1)


def test_a_repeated_bill_is_told_from_a_booked_one_and_from_one_that_waits(
    worker: Settings,
) -> None:
    asked(worker, "reports.tell", "q")
    with traffic(worker, "reports.tell"):
        assert outcome(worker, "cost", "q", "0.001", router="reports.tell") == "booked"
        assert outcome(worker, "cost", "q", "0.002", router="reports.tell") == "duplicate"
        assert (
            outcome(worker, "cost", "q", "0.002", "--revision", "1", router="reports.tell")
            == "booked"
        )
        assert outcome(worker, "cost", "later", "0.002", router="reports.tell") == "waiting"
        assert outcome(worker, "reward", "later", "0.2", router="reports.tell") == "waiting"
    assert "booked before" in done(worker, "cost", "q", "0.001", router="reports.tell")


def test_a_bill_for_a_router_that_is_not_declared_is_not_sent(worker: Settings) -> None:
    result = run(worker, "cost", "q", "0.001", router="reports.nobody")
    assert result.exit_code == 1
    assert "is not declared" in result.output


@pytest.mark.parametrize("as_json", [False, True])
def test_without_a_worker_the_bill_is_said_to_stay_queued(worker: Settings, as_json: bool) -> None:
    # The router's state is on pb.lambda of a service whose worker reads other bills: as if it had
    # stopped.
    asked(worker, f"reports.alone.{as_json}", "q")
    alone = worker.model_copy(
        update={"prefix": f"alone-{uuid4().hex[:8]}.", "app_id": f"alone-{uuid4().hex[:8]}"}
    )
    asyncio.run(create_topics(alone))
    asyncio.run(_copy_state(worker, alone, f"reports.alone.{as_json}"))
    words = ["cost", "q", "0.001", "--timeout", "0.5", *(["--json"] if as_json else [])]
    result = run(alone, *words, router=f"reports.alone.{as_json}")
    assert result.exit_code == 1
    if as_json:
        assert json.loads(result.stdout)["outcome"] == "no_answer"
    assert "stays queued" in result.output


async def _copy_state(source: Settings, target: Settings, router: str) -> None:
    async with open_bus(source, "lambda") as bus:
        record = await bus.latest("lambda", router)
    async with open_bus(target, "lambda") as bus:
        await bus.send_bytes("lambda", router, None if record is None else record.value)
