"""What is in force of a router stays on `pb.routers` for as long as it lives, whatever was refused
and compacted.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from agents.table import keys
from schemas.headers import BASED_ON, REPEATED
from streams.settings import Settings
from studies.audit.run import audit
from tests.audit_world import MODELS, World, router
from tests.memory_worker import Left, MemoryWorker

HOME = "home"
SETTINGS = Settings(prefix="pb.", app_id="force", partitions=1)
ODD = {
    **MODELS,
    "odd": {"input_price_per_m": 1.0, "output_price_per_m": 1.0, "prior": {"like": "nobody"}},
}


async def started() -> World:
    """Return a service with one router."""
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router(HOME))
    await world.pass_time(0.5)
    return world


def last(world: World) -> Any:
    """Return the last record on `pb.routers`."""
    return world.records["routers", 0][-1]


def published(world: World) -> int:
    """Return the offset that is said to be in force."""
    return int(json.loads(world.records["lambda", 0][-1].value or b"{}")["config_offset"])


def letters(world: World) -> list[str]:
    """Return the reasons of all dead letters."""
    return [record.headers["pb.reason"] for record in world.records["dlq", 0]]


@pytest.mark.parametrize(
    ("event", "headers", "reason"),
    [
        (router(HOME, models=ODD), [], "invalid_config"),
        (router(HOME, dimensions=9), [], "invalid_config"),
        (router(HOME, budget_usd_per_request=9.0), [(BASED_ON, b"7")], "stale_config"),
        (None, [(BASED_ON, b"7")], "stale_config"),
        (b"{", [], "malformed_json"),
        (router(HOME, models={"x": {}}), [], "missing_field"),
        (router(HOME), [(REPEATED, b"1"), (BASED_ON, b"7")], None),
        (
            router(HOME, budget_usd_per_request=9.0),
            [(REPEATED, b"1"), (BASED_ON, b"7")],
            "stale_config",
        ),
    ],
)
async def test_a_refused_record_is_followed_by_the_one_in_force(
    event: Any, headers: Any, reason: str | None
) -> None:
    world = await started()
    await world.send("routers", event, key=HOME.encode(), headers=headers)
    await world.pass_time(0.5)
    assert letters(world) == ([] if reason is None else [reason])
    assert json.loads(last(world).value) == router(HOME)
    assert published(world) == last(world).offset == (1 if reason is None else 2)
    assert audit(world.topics(), SETTINGS).clean


async def test_a_declaration_that_follows_the_refused_one_at_once_needs_no_repetition() -> None:
    world = await started()
    bad, good = (
        json.dumps(router(HOME, **changed)).encode()
        for changed in ({"dimensions": 9}, {"budget_usd_per_request": 2.0})
    )
    await world.worker.take("routers", [message(1, bad), message(2, good)])
    assert [topic for topic, *_ in world.worker.said if topic == "pb.routers"] == []


def message(offset: int, value: bytes | None, headers: Any = ()) -> Any:
    """Return a record of `pb.routers` as the worker reads it."""
    return SimpleNamespace(
        topic="pb.routers",
        partition=0,
        offset=offset,
        key=HOME.encode(),
        value=value,
        headers=headers,
        timestamp=1e9,
    )


async def test_of_two_writers_that_raced_with_the_repetition_the_valid_one_wins() -> None:
    world = await started()
    bad, good = (
        json.dumps(router(HOME, **changed)).encode()
        for changed in ({"dimensions": 9}, {"budget_usd_per_request": 2.0})
    )
    worker = world.worker
    await worker.take("routers", [message(1, bad)])
    (_, _, again, headers) = next(said for said in worker.said if said[0] == "pb.routers")
    assert again == json.dumps(router(HOME)).encode()
    worker.said.clear()
    await worker.take("routers", [message(2, good), message(3, again, headers)])
    (_, _, repeated, headers) = next(said for said in worker.said if said[0] == "pb.routers")
    assert (repeated, dict(headers)[BASED_ON]) == (good, b"2")
    worker.said.clear()
    await worker.take("routers", [message(4, repeated, headers)])
    assert [topic for topic, *_ in worker.said if topic == "pb.routers"] == []


async def taken_over(before: MemoryWorker) -> MemoryWorker:
    """Return the worker that goes on after another one."""
    after = MemoryWorker(SETTINGS, [0])
    await after.start(before)
    await after.pass_time()
    return after


async def test_a_crash_before_the_repetition_is_gone_on_from() -> None:
    before = MemoryWorker(SETTINGS, [0])
    await before.start()
    await before.take("routers", [message(0, json.dumps(router(HOME)).encode())])
    before.mute = True
    with pytest.raises(Left):
        await before.take("routers", [message(1, json.dumps(router(HOME, dimensions=9)).encode())])
    after = await taken_over(before)
    said = [value for topic, _, value, _ in after.said if topic == "pb.routers"]
    assert [json.loads(value or b"") for value in said] == [router(HOME)]


async def test_a_lock_that_an_older_worker_left_is_opened_by_the_next_one() -> None:
    before = MemoryWorker(SETTINGS, [0])
    await before.start()
    event = router(
        HOME, caps={"day": {"usd": 2.0, "mode": "hard"}}, alpha=0.5, profile="paper", t_adapt=300.0
    )
    await before.take("routers", [message(0, json.dumps(event).encode())])
    before.changelog = [record for record in before.changelog if record[1][:1] != keys.DECLARED]
    after = await taken_over(before)
    (_, key, value, headers) = next(said for said in after.said if said[0] == "pb.routers")
    assert (key, dict(headers)[BASED_ON]) == (HOME.encode(), b"0")
    assert json.loads(value or b"") == event | {"t_adapt": pytest.approx(300.0)}
    after.said.clear()
    await after.take("routers", [message(5, value or b"", headers)])
    await after.pass_time()
    assert (
        json.loads(next(said[2] for said in after.said if said[0] == "pb.lambda") or b"")[
            "config_offset"
        ]
        == 5
    )
    after.changelog = before.changelog + after.changelog
    assert [said for said in (await taken_over(after)).said if said[0] == "pb.routers"] == []


async def test_a_document_that_an_older_worker_has_overtaken_is_not_put_in_force() -> None:
    before = MemoryWorker(SETTINGS, [0])
    await before.start()
    await before.take("routers", [message(0, json.dumps(router(HOME)).encode())])
    kept = [record for record in before.changelog if record[1][:1] == keys.DECLARED]
    await before.take(
        "routers", [message(1, json.dumps(router(HOME, budget_usd_per_request=0.5)).encode())]
    )
    before.changelog += kept
    after = await taken_over(before)
    (_, _, value, headers) = next(said for said in after.said if said[0] == "pb.routers")
    assert (json.loads(value or b"")["budget_usd_per_request"], dict(headers)[BASED_ON]) == (
        0.5,
        b"1",
    )


async def test_a_router_that_is_gone_leaves_no_document() -> None:
    world = await started()
    await world.send("routers", None, key=HOME.encode())
    assert keys.DECLARED not in {key[:1] for key in world.worker.table(0)}
    await world.send("routers", b"{", key=HOME.encode())
    await world.pass_time(0.5)
    assert last(world).offset == 2
