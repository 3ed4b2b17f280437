"""Dead letters: listed, shown, sent again, on a real broker."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from uuid import uuid4

from doors.console.bus import open_bus
from streams.settings import Settings
from tests.integration.commands import CONTEXT, PRICES, add_two, done, done_json, run


def letters(worker: Settings, router: str, count: int, *options: str) -> Any:
    """Return a router's dead letters, once there are so many."""
    deadline = time.monotonic() + 60
    while True:
        found = done_json(worker, "dlq", "list", *options, router=router)
        if len(found) >= count:
            return found
        assert time.monotonic() < deadline


def test_a_refused_request_is_listed_shown_and_answered_when_it_is_sent_again(
    worker: Settings,
) -> None:
    router = f"dlq.{uuid4().hex[:6]}"
    assert (
        run(
            worker, "request", "--context", "-", "--id", "early", stdin=CONTEXT, router=router
        ).exit_code
        == 1
    )
    (one,) = letters(worker, router, 1, "--reason", "unknown_router")
    assert (one["topic"], one["request_id"], one["reason"]) == (
        "requests",
        "early",
        "unknown_router",
    )
    shown = done(worker, "dlq", "show", one["letter"])
    assert f"pbstream dlq retry {one['letter']}" in shown
    assert json.loads(done(worker, "dlq", "show", one["letter"], "--raw"))["request_id"] == "early"
    add_two(worker, router)
    asked = run(worker, "dlq", "retry", "--reason", "unknown_router", router=router)
    assert (asked.exit_code, "--yes" in asked.output) == (1, True)
    (sent,) = done_json(
        worker, "dlq", "retry", "--reason", "unknown_router", "--yes", router=router
    )
    assert sent["letter"] == one["letter"]
    answer = done_json(
        worker, "request", "--context", "-", "--id", "early", stdin=CONTEXT, router=router
    )
    assert (answer["seq"], answer["repeat"]) == (1, True)


def test_malformed_events_are_left_out_and_declarations_never_sent_again(worker: Settings) -> None:
    router = f"dlq.{uuid4().hex[:6]}"
    add_two(worker, router)

    async def write() -> None:
        async with open_bus(worker, "costs") as bus:
            await bus.send_bytes("costs", router, b"{")

    asyncio.run(write())
    assert (
        run(worker, "models", "add", "odd", *PRICES, "--like", "nobody", router=router).exit_code
        == 1
    )
    found = {one["topic"]: one["letter"] for one in letters(worker, router, 2)}
    assert done_json(worker, "dlq", "retry", "--yes", router=router) == []
    refused = run(worker, "dlq", "retry", found["routers"])
    assert refused.exit_code == 1
    assert "routers apply" in refused.output
    assert done_json(worker, "dlq", "retry", found["costs"])[0]["topic"] == "costs"
    assert len(letters(worker, router, 3, "--topic", "costs", "--topic", "routers")) >= 3


def test_names_of_no_letter_and_no_choice_are_said_to_be_wrong(worker: Settings) -> None:
    for words in (("show", "0:999999"), ("show", "x"), ("retry", "99:1")):
        result = run(worker, "dlq", *words)
        assert result.exit_code == 1
        assert "dlq list" in result.output
    assert run(worker, "dlq", "retry").exit_code == 2


def test_explain_shows_only_its_own_routers_dead_letters(worker: Settings) -> None:
    mine, other = f"dlq.{uuid4().hex[:6]}", f"dlq.{uuid4().hex[:6]}"
    for router in (mine, other):
        add_two(worker, router)
    done(worker, "request", "--context", "-", "--id", "same", stdin=CONTEXT, router=mine)
    run(worker, "request", "--context", "-", "--id", "same", stdin="[1, 1]", router=other)
    assert len(letters(worker, other, 1)) == 1
    assert done_json(worker, "explain", "same", router=mine)["dead_letters"] == []
    assert len(done_json(worker, "explain", "same", router=other)["dead_letters"]) == 1
