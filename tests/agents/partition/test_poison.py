"""An event on which the worker fails: it has three lives, is refused then, and all others go on as
if it had never been.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.partition import poison
from router_state import deciding, engine, feedback
from router_state.state import invariants, redeclaring, sweeping
from streams.settings import Settings
from studies.audit.run import audit
from tests.agents.crashing import CONTEXT, HOME, Log, reasons, routes
from tests.audit_world import World, router
from tests.memory_worker import MemoryWorker

SETTINGS = Settings(prefix="pb.", app_id="poison", partitions=1)


class Defect(ArithmeticError):
    """What nobody has thought of."""


def defect(
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    strikes: Callable[..., bool],
    *,
    times: int = 10**9,
) -> list[int]:
    """Let a function of the core fail after it has done its work; return how often it has."""
    true, failed = getattr(module, name), []

    def failing(*args: Any, **kwargs: Any) -> Any:
        found = true(*args, **kwargs)
        if strikes(*args) and len(failed) < times:
            failed.append(1)
            raise Defect("private")
        return found

    monkeypatch.setattr(module, name, failing)
    return failed


async def started(settings: Settings = SETTINGS) -> tuple[MemoryWorker, Log]:
    """Return a worker with one router that has decided a request."""
    worker, log = MemoryWorker(settings, [0]), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    await worker.take(
        "requests", [log.event("requests", {"request_id": "first", "context": CONTEXT})]
    )
    return worker, log


def check(worker: MemoryWorker) -> Any:
    """Return the router's state, checked."""
    found = worker.partitions[0].routers.engine(HOME)
    assert found is not None
    invariants.check(found.state, found.records)
    return found.state


async def test_a_request_that_always_fails_is_refused_after_three_lives_and_the_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker, log = await started()
    failed = defect(
        monkeypatch, engine, "decide", lambda state, request, *_: request.request_id == "b"
    )
    await worker.take(
        "requests",
        [log.event("requests", {"request_id": name, "context": CONTEXT}) for name in "abc"],
    )
    assert [(route["request_id"], route["seq"]) for route in routes(worker)] == [
        ("first", 1),
        ("a", 2),
        ("c", 3),
    ]
    assert reasons(worker) == ["internal_error"]
    assert len(failed) == 1 + poison.LIVES  # with the others, then alone
    assert "Defect" in caplog.text and "pb.requests-0@2" in caplog.text
    state = check(worker)
    assert (state.seq, state.in_flight) == (3, 3)
    await worker.pass_time()
    assert reasons(worker) == ["internal_error"]


async def test_a_failure_that_passes_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, log = await started()
    defect(
        monkeypatch,
        engine,
        "decide",
        lambda state, request, *_: request.request_id == "b",
        times=poison.LIVES,
    )
    await worker.take(
        "requests",
        [log.event("requests", {"request_id": name, "context": CONTEXT}) for name in "ab"],
    )
    assert [route["request_id"] for route in routes(worker)] == ["first", "a", "b"]
    assert reasons(worker) == []


@pytest.mark.parametrize(
    ("topic", "module", "name", "event"),
    [
        ("costs", feedback, "settle", {"request_id": "first", "cost_usd": 0.001}),
        (
            "rewards",
            feedback,
            "learn",
            {"request_id": "first", "reward": 0.5, "source": "judge"},
        ),
    ],
)
async def test_a_bill_or_reward_that_fails_leaves_no_trace_in_the_state(
    monkeypatch: pytest.MonkeyPatch, topic: str, module: Any, name: str, event: dict[str, Any]
) -> None:
    worker, log = await started()
    before = {key: value for key, value in worker.table(0).items() if key[:1] in (b"h", b"a", b"q")}
    defect(monkeypatch, module, name, lambda *_: True)
    await worker.take(topic, [log.event(topic, event)])
    assert reasons(worker) == ["internal_error"]
    assert {
        key: value for key, value in worker.table(0).items() if key[:1] in (b"h", b"a", b"q")
    } == before
    check(worker)


async def test_a_declaration_that_fails_is_refused_and_what_is_in_force_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, log = await started()
    defect(monkeypatch, redeclaring, "declare", lambda *_: True)
    await worker.take("routers", [log.event("routers", router(HOME, budget_usd_per_request=5.0))])
    assert reasons(worker) == ["internal_error"]
    assert check(worker).config.budget_usd_per_request != 5.0


async def test_a_request_that_waited_for_its_router_and_fails_then_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, log = MemoryWorker(SETTINGS, [0]), Log()
    await worker.start()
    await worker.take(
        "requests",
        [log.event("requests", {"request_id": name, "context": CONTEXT}) for name in "ab"],
    )
    defect(monkeypatch, engine, "decide", lambda state, request, *_: request.request_id == "a")
    await worker.take("routers", [log.event("routers", router(HOME))])
    assert ([route["request_id"] for route in routes(worker)], reasons(worker)) == (
        ["b"],
        ["internal_error"],
    )


async def test_a_router_on_which_the_sweep_fails_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, log = await started()
    await worker.take("routers", [log.event("routers", router("other"), key=b"other")])
    await worker.take(
        "requests",
        [
            log.event(
                "requests",
                {"router_id": "other", "request_id": "r", "context": CONTEXT},
                key=b"other",
            )
        ],
    )
    defect(
        monkeypatch,
        sweeping,
        "expire",
        lambda state, *_: state.seq == 1 and "first" in state.open_commitments,
    )
    worker.clock.now += 3600.0
    await worker.pass_time()
    other = worker.partitions[0].routers.engine("other")
    assert other is not None and other.state.expired == 1


async def test_what_was_tried_again_is_proved_by_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router(HOME))
    defect(
        monkeypatch,
        engine,
        "decide",
        lambda state, request, *_: request.request_id.endswith("3"),
        times=17,
    )
    for number in range(20):
        event = {"router_id": HOME, "request_id": f"r-{number}"}
        await world.send("requests", {**event, "context": CONTEXT})
        await world.send("costs", {**event, "cost_usd": 1e-4})
        await world.send("rewards", {**event, "reward": 0.5, "source": "judge"})
    await world.pass_time(100.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.clean, findings.as_json()


async def test_an_event_that_breaks_an_invariant_is_refused_where_states_are_checked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    true = deciding.decide

    def miscounting(state: Any, request: Any, *rest: Any) -> Any:
        record = true(state, request, *rest)
        if request.request_id == "b":
            state.settled += 1
        return record

    monkeypatch.setattr(engine, "decide", miscounting)
    worker, log = await started(SETTINGS.model_copy(update={"validate_state": True}))
    names = [{"request_id": name, "context": CONTEXT} for name in "abc"]
    await worker.take("requests", [log.event("requests", name) for name in names])
    assert [route["request_id"] for route in routes(worker)] == ["first", "a", "c"]
    assert reasons(worker) == ["internal_error"]
    assert "settled is not the number of bills" in caplog.text
    assert f"failed on the state of router {HOME}" in caplog.text
    assert check(worker).settled == 0
