"""One router that can't be read, because it is damaged or another version wrote it, is set aside;
all others go on.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.refusal_kinds import Refused
from agents.table import keys
from agents.table.parking import Parked
from router_state.errors import DamagedState
from router_state.packing.framing import frame
from router_state.state import restoring
from schemas.dlq import REASON
from tests.agents.crashing import CONTEXT, HOME, SETTINGS, Log
from tests.audit_world import router
from tests.memory_worker import Left, MemoryWorker

OTHER = "other"


async def settled() -> tuple[MemoryWorker, Log]:
    """Return a worker with two routers, one decided request each."""
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    for name in (HOME, OTHER):
        await worker.take("routers", [log.event("routers", {**router(name)}, key=name.encode())])
        await worker.take("requests", [ask(log, name, f"{name}-1")])
    return worker, log


def ask(log: Log, name: str, request_id: str) -> Any:
    return log.event(
        "requests",
        {"router_id": name, "request_id": request_id, "context": CONTEXT},
        key=name.encode(),
    )


def bill(log: Log, name: str, request_id: str) -> Any:
    return log.event(
        "costs", {"router_id": name, "request_id": request_id, "cost_usd": 0.001}, key=name.encode()
    )


async def restarted(worker: MemoryWorker, spoil: dict[bytes, bytes]) -> MemoryWorker:
    """Return the next worker, on a changelog in which some records are others."""
    worker.changelog = [
        (number, key, spoil.get(key, value) if value else value, epoch, at)
        for number, key, value, epoch, at in worker.changelog
    ]
    after = MemoryWorker(SETTINGS, [0])
    after.clock.now = worker.clock.now
    await after.start(worker)
    return after


def said(worker: MemoryWorker, topic: str, name: str) -> list[Any]:
    return [
        value and json.loads(value)
        for at, key, value, _ in worker.said
        if at == f"pb.{topic}" and key == name.encode()
    ]


def reasons(worker: MemoryWorker) -> list[str]:
    return [
        dict(headers)[REASON].decode() for topic, _, _, headers in worker.said if topic == "pb.dlq"
    ]


SPOILT = {
    "newer": lambda packed: bytes([packed[0] + 1]) + packed[1:],
    "of no format": lambda packed: b"\x00" + packed[1:],
    "damaged": lambda packed: packed[:-1] + bytes([packed[-1] ^ 0xFF]),
    "empty": lambda packed: b"\x00",
    "another layout": lambda packed: frame(b'{"counters": {}}'),
}


@pytest.mark.parametrize(
    "kind", [keys.HEAD, keys.CONFIG, keys.REQUEST], ids=["head", "config", "request"]
)
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
async def test_events_of_an_unreadable_router_are_refused_and_all_others_go_on(
    spoil: Any, kind: bytes
) -> None:
    worker, log = await settled()
    at = keys.key(kind, HOME, f"{HOME}-1" if kind == keys.REQUEST else "")
    after = await restarted(worker, {at: spoil(worker.table(0)[at])})
    kept = {raw: value for raw, value in after.table(0).items() if HOME.encode() in raw}
    await after.pass_time()
    await after.take(
        "requests",
        [ask(log, HOME, f"{HOME}-1"), ask(log, HOME, f"{HOME}-2"), ask(log, OTHER, f"{OTHER}-2")],
    )
    await after.take(
        "costs",
        [bill(log, HOME, f"{HOME}-1"), bill(log, HOME, "unknown"), bill(log, OTHER, f"{OTHER}-1")],
    )
    await after.take(
        "routers",
        [log.event("routers", {**router(HOME, budget_usd_per_request=1.0)}, key=HOME.encode())],
    )
    after.clock.now += 3600.0
    await after.pass_time()
    assert reasons(after) == ["router_unreadable"] * 5
    assert [route["request_id"] for route in said(after, "routes", OTHER)] == [f"{OTHER}-2"]
    assert said(after, "lambda", OTHER)[-1]["settled"] == 1
    assert said(after, "lambda", HOME) == []
    (alert,) = said(after, "alerts", HOME)
    assert alert["kind"] == "router_unreadable" and alert["evidence"]["why"]
    assert kept.items() <= after.table(0).items()


async def test_whoever_can_read_it_again_goes_on_with_it() -> None:
    worker, log = await settled()
    at = keys.key(keys.HEAD, HOME)
    right = worker.table(0)[at]
    between = await restarted(worker, {at: bytes([right[0] + 1]) + right[1:]})
    await between.take("requests", [ask(log, HOME, f"{HOME}-2")])
    await between.pass_time()
    between.changelog = worker.changelog + between.changelog
    after = await restarted(between, {at: right})
    await after.take("requests", [ask(log, HOME, f"{HOME}-1"), ask(log, HOME, f"{HOME}-3")])
    assert [(route["seq"], route["repeat"]) for route in said(after, "routes", HOME)] == [
        (1, True),
        (2, False),
    ]


async def test_an_unreadable_router_can_be_let_go_and_begins_anew() -> None:
    worker, log = await settled()
    at = keys.key(keys.HEAD, HOME)
    after = await restarted(worker, {at: b"\x09" + worker.table(0)[at][1:]})
    await after.pass_time()
    await after.take("routers", [log.event("routers", None, key=HOME.encode())])
    assert not [raw for raw in after.table(0) if HOME.encode() in raw]
    assert said(after, "lambda", HOME) == [None]
    await after.take("routers", [log.event("routers", {**router(HOME)}, key=HOME.encode())])
    await after.take("requests", [ask(log, HOME, f"{HOME}-1")])
    assert [(route["seq"], route["repeat"]) for route in said(after, "routes", HOME)] == [
        (1, False)
    ]


@pytest.mark.parametrize("spoil", [SPOILT["newer"], SPOILT["empty"]], ids=["newer", "empty"])
async def test_what_waited_and_can_not_be_read_is_dead_lettered_by_its_place(spoil: Any) -> None:
    worker, log = await settled()
    waiting = bill(log, HOME, "later")
    await worker.take("costs", [waiting])
    (at,) = [raw for raw in worker.table(0) if raw[:1] == keys.PARKED]
    after = await restarted(worker, {at: spoil(worker.table(0)[at])})
    await after.pass_time()
    assert reasons(after) == ["router_unreadable"]
    (headers,) = [dict(headers) for topic, _, _, headers in after.said if topic == "pb.dlq"]
    assert headers["__connect.errors.offset"] == str(waiting.offset).encode()
    await after.pass_time()
    assert not [raw for raw in after.table(0) if raw[:1] == keys.PARKED]


@pytest.mark.parametrize("damaged", [b"", b"{", b"[1]", b'{"pb.requests": null}', b"\xff\x00"])
async def test_damaged_watermarks_lose_nothing_and_book_nothing_twice(
    damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    worker, log = await settled()
    paid = bill(log, HOME, f"{HOME}-1")
    await worker.take("costs", [paid])
    after = await restarted(worker, {keys.WATERMARKS: damaged})
    again = log.event(
        "requests",
        {"router_id": HOME, "request_id": f"{HOME}-1", "context": CONTEXT},
        key=HOME.encode(),
    )
    await after.take("requests", [again, ask(log, HOME, "next")])
    await after.take("costs", [paid])
    engine = after.partitions[0].routers.engine(HOME)
    assert engine is not None and engine.state.spend_usd == 0.001
    answers = [(route["request_id"], route["seq"]) for route in said(after, "routes", HOME)]
    assert answers == [(f"{HOME}-1", 1), ("next", 2)]
    assert "can't be read" in caplog.text


def test_a_reason_that_only_a_newer_worker_knows_is_said_as_it_is() -> None:
    assert Refused("too_beautiful", "why").reason == "too_beautiful"


@pytest.mark.parametrize("body", [b"", b"\x9d\xa1", b"\xc0", b"\x90", b"\x9d\xa1\xff"])
def test_a_damaged_parked_event_is_not_taken_for_one(body: bytes) -> None:
    parked = Parked("pb.costs", 0, 7, b"k", b"v", "r", "q", 1.0, "orphan_cost", "why")
    assert Parked.unpack(parked.pack()) == parked
    with pytest.raises(DamagedState):
        Parked.unpack(frame(body))
    newer = parked.pack()[0] + 1
    with pytest.raises(DamagedState, match=f"format {newer} is newer"):
        Parked.unpack(bytes([newer]) + parked.pack()[1:])


async def test_a_fault_of_this_program_while_it_reads_ends_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, log = await settled()
    after = await restarted(worker, {})

    def faulty(*given: Any) -> Any:
        raise AttributeError("a fault of the program")

    monkeypatch.setattr(restoring, "unpack", faulty)
    with pytest.raises(Left):
        await after.take("requests", [ask(log, HOME, f"{HOME}-2")])
    assert after.partitions[0].routers.unreadable == {}
