"""What a refusal leaves behind: the alert that tells of it, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streams.settings import Settings
from tests.agents import crashing
from tests.audit_world import DIMENSIONS, World, router

HOME = "home"
CONTEXT = [0.1] * (DIMENSIONS - 1) + [1.0]


async def started(**changed: Any) -> World:
    """Return a service with one router that was just declared."""
    world = World(Settings(prefix="pb.", app_id="refusing", partitions=1))
    await world.start()
    await world.send("routers", router(HOME, **changed))
    return world


def alerts(world: World) -> list[str]:
    """Return the kinds of all alerts that were published."""
    return [json.loads(record.value or b"{}")["kind"] for record in world.records["alerts", 0]]


async def test_the_alert_of_a_hard_cap_is_published_while_all_that_happens_is_refused() -> None:
    world = await started(caps={"hour": {"usd": 1e-9, "mode": "hard"}})
    for number in range(3):
        await world.send(
            "requests", {"router_id": HOME, "request_id": f"r-{number}", "context": CONTEXT}
        )
    await world.pass_time(0.5)
    assert alerts(world) == ["cap_reached"]
    assert [record.headers["pb.reason"] for record in world.records["dlq", 0]] == [
        "cap_reached"
    ] * 3
    await world.pass_time(0.5)
    assert alerts(world) == ["cap_reached"]


def said(world: World) -> tuple[list[tuple[str, int, bool]], list[str]]:
    """Return what was answered (request_id, seq, repeat) and the reasons of what was refused, in
    order.
    """
    routes = [json.loads(record.value or b"{}") for record in world.records["routes", 0]]
    return (
        [(route["request_id"], route["seq"], route["repeat"]) for route in routes],
        [record.headers["pb.reason"] for record in world.records["dlq", 0]],
    )


BODIES: dict[str, dict[str, Any]] = {
    "no context": {},
    "wrong bias": {"context": [0.5, 0.5]},
    "wrong dimensions": {"context": [0.5, 1.0]},
    "no numbers": {"context": "none"},
    "empty prompt": {"prompt": " "},
    "long prompt": {"prompt": "x" * (2**20 + 1)},
    "nobody allowed": {"context": CONTEXT, "allowed_models": []},
    "negative price": {"context": CONTEXT, "max_price_per_1k": -1},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_request_that_has_its_answer_gets_it_again_whatever_its_body(
    body: dict[str, Any],
) -> None:
    world = await started()
    await world.send("requests", {"router_id": HOME, "request_id": "r", "context": CONTEXT})
    await world.send("requests", {"router_id": HOME, "request_id": "r", **body})
    assert said(world) == ([("r", 1, False), ("r", 1, True)], [])


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_body_that_is_refused_leaves_its_id_free(body: dict[str, Any]) -> None:
    world = await started()
    await world.send("requests", {"router_id": HOME, "request_id": "r", **body})
    await world.send("requests", {"router_id": HOME, "request_id": "r", "context": CONTEXT})
    answered, refused = said(world)
    assert (answered, len(refused)) == ([("r", 1, False)], 1)
    await world.pass_time(1.0)
    assert len(said(world)[1]) == 1


async def test_a_sound_context_wins_over_a_prompt_that_is_too_long() -> None:
    world = await started()
    await world.send(
        "requests",
        {"router_id": HOME, "request_id": "r", "context": CONTEXT, "prompt": "x" * (2**20 + 1)},
    )
    assert said(world) == ([("r", 1, False)], [])


@pytest.mark.parametrize("prompt", [{}, {"prompt": ""}, {"prompt": " \n"}])
@pytest.mark.parametrize("need", ["vision", "audio"])
async def test_an_image_or_sound_alone_is_decided_on_the_mean_context(
    need: str, prompt: dict[str, str]
) -> None:
    world = await started()
    mean = [0.0] * (DIMENSIONS - 1) + [1.0]
    asked = {"router_id": HOME, "request_id": "r", "needs": {need: True}, **prompt}
    await world.send("requests", asked)
    assert said(world) == ([("r", 1, False)], [])
    engine = world.worker.partitions[0].routers.engine(HOME)
    assert engine is not None
    record = engine.records["r"]
    assert record.x is not None
    assert (record.x.tolist(), record.input_tokens) == (mean, None)


async def test_needs_of_text_alone_make_no_empty_prompt_good() -> None:
    world = await started()
    asked = {"router_id": HOME, "request_id": "r", "needs": {"tools": True}, "prompt": ""}
    await world.send("requests", asked)
    assert said(world) == ([], ["empty_prompt"])


async def test_a_request_of_which_no_id_can_be_read_is_refused_at_once() -> None:
    world = await started()
    await world.send("requests", b'{"router_id": "home", "request_id": ', key=b"home")
    await world.send("requests", {"router_id": HOME, "request_id": "", "context": CONTEXT})
    assert said(world) == ([], ["malformed_json", "invalid_field"])


@pytest.mark.parametrize("size", [2**20 + 1, 10 * 2**20])
async def test_a_prompt_over_its_bound_is_too_large_at_any_size(size: int) -> None:
    worker, log = await crashing.started()
    await worker.take(
        "requests", [log.event("requests", {"request_id": "r", "prompt": "a" * size})]
    )
    assert crashing.reasons(worker) == ["prompt_too_large"]
