"""The service end to end: a real worker on a real broker, which each test asks of a router of its
own.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from agents.table import keys
from router_state.state import invariants
from tests.integration.service import RunningService, cost, request, reward, router, running_service
from tests.malformed import for_the_worker, malformed

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_for_all(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run one worker, with short waits."""
    async with running_service(
        kafka, tmp_path_factory.mktemp("one"), PB_ORPHAN_WAIT="2", PB_UNKNOWN_ROUTER_WAIT="2"
    ) as running:
        await running.ready(running.worker(instance="one"))
        yield running


@pytest.fixture
def service(one_for_all: RunningService) -> RunningService:
    """Return the service without what it said in earlier tests."""
    return one_for_all.forget()


async def test_request_is_decided_paid_and_learned_from(service: RunningService, home: str) -> None:
    declared = await service.send("routers", router(home))
    await service.send("requests", request(home, "r-1", seed=1))
    await service.until(lambda: service.route("r-1"), "a decision")
    route = service.route("r-1")
    assert (
        route
        and route["seq"] == 1
        and not route["repeat"]
        and route["config_offset"] == declared.offset
    )
    assert {candidate["model"] for candidate in route["candidates"]} == {
        "llama",
        "mistral",
        "gemini",
    }
    assert all(
        c["score"] == pytest.approx(c["mean"] + c["bonus"] - c["penalty"])
        for c in route["candidates"]
    )
    await service.until(lambda: service.lambda_of(home).get("in_flight") == 1, "a commitment")
    assert service.lambda_of(home)["committed_usd"] == pytest.approx(route["expected_cost_usd"])

    before = await service.engine(home)
    await service.send("costs", cost(home, "r-1", 0.004))
    await service.send("rewards", reward(home, "r-1", 0.9))
    await service.until(lambda: service.lambda_of(home).get("rewards_applied") == 1, "a reward")
    await service.until(lambda: service.lambda_of(home).get("settled") == 1, "a bill")
    after = await service.engine(home)
    invariants.check(after.state, after.records)
    shown = service.lambda_of(home)
    assert (shown["spend_usd"], shown["committed_usd"], shown["in_flight"]) == (0.004, 0.0, 0)
    arm = after.state.arms.row[route["model"]]
    assert not np.array_equal(
        before.state.arms[arm].rewards.theta, after.state.arms[arm].rewards.theta
    )
    assert shown["lambda_t"] == after.state.lambda_t


async def test_dear_bills_raise_lambda(service: RunningService, home: str) -> None:
    await service.send("routers", router(home, profile="paper"))
    for number in range(20):
        await service.send("requests", request(home, f"r-{number}", seed=number))
        await service.send("costs", cost(home, f"r-{number}", 0.01))
    await service.until(lambda: service.lambda_of(home).get("settled") == 20, "twenty bills")
    assert service.lambda_of(home)["lambda_t"] > 0.0
    assert service.lambda_of(home)["spend_usd"] == pytest.approx(0.2)


async def test_same_request_again_gets_the_same_answer(service: RunningService, home: str) -> None:
    await service.send("routers", router(home))
    for seed in (1, 2):
        await service.send("requests", request(home, "again", seed=seed))
        await service.send("requests", request(home, f"other-{seed}", seed=seed))
    await service.send("requests", request(home, "again", seed=3, allowed_models=["no such model"]))
    await service.until(lambda: len(service.routes(home)) == 5, "five answers")
    first, *repeats = [route for route in service.routes(home) if route["request_id"] == "again"]
    assert not first["repeat"] and [route["repeat"] for route in repeats] == [True, True]
    same = (
        "model",
        "seq",
        "lambda_t",
        "decided_at",
        "reason",
        "propensity",
        "expected_cost_usd",
        "config_offset",
    )
    assert all(route[name] == first[name] for route in repeats for name in same)
    assert sorted(route["seq"] for route in service.routes(home) if not route["repeat"]) == [
        1,
        2,
        3,
    ]


async def test_bill_and_reward_may_overtake_their_request(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    await service.until(lambda: service.lambda_of(home), "the router")
    await service.send("rewards", reward(home, "late", 0.7))
    await service.send("costs", cost(home, "late", 0.002))
    await service.send("requests", request(home, "late"))
    await service.until(lambda: service.lambda_of(home).get("settled") == 1, "the bill")
    shown = service.lambda_of(home)
    assert (shown["rewards_applied"], shown["spend_usd"], shown["unmatched_cost_usd"]) == (
        1,
        0.002,
        0.0,
    )
    assert not service.dead_letters()


async def test_orphans_are_dead_lettered_and_their_money_is_counted_once(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    await service.until(lambda: service.lambda_of(home), "the router")
    await service.send("costs", cost(home, "nobody", 0.002))
    await service.send("costs", cost(home, "nobody", 0.002))
    await service.send("costs", cost(home, "nobody", 0.003, revision=1))
    await service.send("costs", cost(home, "else", 0.01))
    await service.send("rewards", reward(home, "nobody", 0.7))
    await service.until(lambda: len(service.dead_letters()) == 3, "three dead letters")
    assert service.reasons() == {"orphan_cost": 2, "orphan_reward": 1}
    await service.until(lambda: service.lambda_of(home)["unmatched_cost_usd"] > 0.012, "the money")
    assert service.lambda_of(home)["unmatched_cost_usd"] == pytest.approx(0.013)
    assert service.lambda_of(home)["spend_usd"] == 0.0


async def test_request_waits_for_its_router(service: RunningService, home: str) -> None:
    await service.send("requests", request(home, "early"))
    await service.send("requests", request("nobody", "never"))
    await service.send("requests", request(home, "early-too"))
    await service.send("routers", router(home))
    await service.until(lambda: len(service.routes(home)) == 2, "two decisions")
    # One that is read behind the declaration may come before one that waited for it.
    assert {route["request_id"] for route in service.routes(home)} == {"early", "early-too"}
    assert [route["seq"] for route in service.routes(home)] == [1, 2]
    await service.until(service.dead_letters, "a dead letter")
    assert service.reasons() == {"unknown_router": 1}
    await service.send("requests", request(home, "after"))
    await service.until(lambda: service.route("after"), "the next decision")
    assert len(service.routes(home)) == 3 and len(service.dead_letters()) == 1


def _with_context(value: bytes | None) -> bytes | None:
    event: dict[str, Any] = json.loads(value or b"{}")
    if "prompt" in event and "context" not in event:
        event |= {"context": [0.0] * 25 + [1.0]}
    return json.dumps(event).encode()


async def test_every_malformed_event_is_dead_lettered_untouched(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home, dimensions=26))
    await service.until(lambda: service.lambda_of(home), "the router")
    sent = {}
    for bad in malformed(home):
        known = home if bad.key is None else None
        partition = None if known is None else service.partition_of(known)
        at = await service.send(bad.topic, bad.value, key=bad.key, partition=partition)
        sent[bad.topic, at.partition, at.offset] = (bad.name, bad.reason, bad.key, bad.value)
    for bad in for_the_worker(home):
        value = _with_context(bad.value) if bad.topic == "requests" else bad.value
        at = await service.send(bad.topic, value, key=bad.key)
        sent[bad.topic, at.partition, at.offset] = (bad.name, bad.reason, bad.key, value)
    good = {"router_id": home, "request_id": "good", "context": [0.0] * 25 + [1.0]}
    await service.send("requests", good)
    await service.until(lambda: len(service.dead_letters()) >= len(sent), "all dead letters")
    await service.until(lambda: service.route("good"), "the next good event")
    letters = service.dead_letters()
    assert letters.keys() == sent.keys()
    for at, (name, reason, key, value) in sent.items():
        letter, record = letters[at]
        assert (name, letter.reason) == (name, reason.value)
        assert (name, record.key, record.value) == (name, key, value)
    assert len(service.routes(home)) == 1
    assert service.workers[0].running


async def test_strays_reach_their_partition_once(service: RunningService, home: str) -> None:
    wrong = (service.partition_of(home) + 1) % service.settings.partitions
    await service.send("routers", router(home), partition=wrong)
    await service.until(lambda: service.lambda_of(home), "the router")
    await service.send("requests", request(home, "astray"), partition=wrong, key=None)
    await service.until(lambda: service.route("astray"), "the decision")
    await service.send("costs", cost(home, "astray", 0.001), partition=wrong)
    await service.send("rewards", reward(home, "astray", 0.5), partition=wrong)
    await service.until(lambda: service.lambda_of(home).get("settled") == 1, "the bill")
    await service.until(lambda: service.lambda_of(home).get("rewards_applied") == 1, "the reward")
    await service.send(
        "requests", request(home, "twice"), partition=wrong, headers=[("pb.forwarded", b"1")]
    )
    await service.until(service.dead_letters, "a dead letter")
    assert service.reasons() == {"wrong_partition": 1}


async def test_conditional_declaration_is_refused_when_it_is_stale(
    service: RunningService, home: str
) -> None:
    first = await service.send("routers", router(home))
    second = await service.send(
        "routers",
        router(home, budget_usd_per_request=1e-3),
        headers=[("pb.based_on", b"%d" % first.offset)],
    )
    await service.until(
        lambda: service.lambda_of(home).get("config_offset") == second.offset,
        "the second declaration",
    )
    await service.send(
        "routers",
        router(home, budget_usd_per_request=5.0),
        headers=[("pb.based_on", b"%d" % first.offset)],
    )
    await service.until(service.dead_letters, "a dead letter")
    assert service.reasons() == {"stale_config": 1}
    assert service.lambda_of(home)["budget_usd_per_request"] == 1e-3


async def test_removed_router_is_gone_and_starts_anew_when_declared_again(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    await service.send("requests", request(home, "r-1"))
    await service.until(lambda: service.route("r-1"), "a decision")
    await service.send("routers", None, key=home.encode())
    await service.send("routers", router(service.beside(home)))
    await service.until(
        lambda: service.lambda_of(service.beside(home)), "what was declared after it"
    )
    await service.send("requests", request(home, "r-2"))
    await service.until(service.dead_letters, "a dead letter")
    assert service.reasons() == {"unknown_router": 1}
    kept = {
        key[:1]
        for key in (await service.partitions())[service.partition_of(home)].records
        if home.encode() in key
    }
    assert kept <= {keys.PARKED}
    await service.send("routers", router(home))
    await service.send("requests", request(home, "r-1"))
    await service.until(lambda: len(service.routes(home)) == 2, "a new decision")
    assert [(route["seq"], route["repeat"]) for route in service.routes(home)] == [
        (1, False),
        (1, False),
    ]


async def test_revisions_move_the_state_by_the_difference(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    await service.send("requests", request(home, "r-1", seed=4))
    await service.send("requests", request(home, "mark", seed=5))
    await service.until(lambda: service.route("mark"), "a decision")
    for event in (
        cost(home, "r-1", 0.01, revision=2),
        cost(home, "r-1", 0.5, revision=1),
        cost(home, "r-1", 0.7, revision=2),
    ):
        await service.send("costs", event)
    await service.send("costs", cost(home, "r-1", 0.02, revision=3))
    judged = [
        ("metric", 0.1, 0),
        ("judge", 0.2, 0),
        ("user", 0.9, 7),
        ("judge", 0.3, 0),
        ("judge", 0.4, 1),
        ("human", 0.8, 0),
    ]
    for source, value, revision in judged:
        await service.send("rewards", reward(home, "r-1", value, source=source, revision=revision))
    for send in (("costs", cost(home, "mark", 0.001)), ("rewards", reward(home, "mark", 0.5))):
        await service.send(*send)
    await service.until(lambda: service.lambda_of(home).get("rewards_applied") == 2, "both rewards")
    await service.until(lambda: service.lambda_of(home).get("settled") == 2, "both bills")
    engine = await service.engine(home)
    assert service.lambda_of(home)["spend_usd"] == pytest.approx(0.021)
    record = engine.records["r-1"]
    assert record.label is not None and record.bill is not None
    assert (
        record.label.reward,
        record.label.source,
        record.bill.cost_usd,
        record.bill.revision,
    ) == (0.8, "human", 0.02, 3)
    invariants.check(engine.state, engine.records)


async def test_refusals_never_outgrow_a_commit(service: RunningService, home: str) -> None:
    large = "x" * 900_000
    for number in range(40):
        await service.send(
            "requests", {"router_id": "nobody", "request_id": f"r-{number}", "prompt": large}
        )
    await service.send(
        "requests",
        {"router_id": "nobody", "request_id": "huge", "prompt": "x", "junk": "x" * 15_000_000},
    )
    await service.send(
        "requests", {"router_id": "nobody", "request_id": "long", "prompt": "x" * 10_000_000}
    )
    await service.until(lambda: len(service.dead_letters()) == 42, "all dead letters")
    assert service.reasons() == {
        "unknown_router": 40,
        "malformed_event": 1,
        "prompt_too_large": 1,
    }
    assert service.workers[0].running


async def test_a_prompt_above_the_workers_limit_is_refused(kafka: str, tmp_path: Path) -> None:
    async with running_service(kafka, tmp_path, PB_PROMPT_BYTES="10") as running:
        await running.ready(running.worker())
        await running.send("routers", router("acme.chat"))
        await running.send(
            "requests", {"router_id": "acme.chat", "request_id": "long", "prompt": "eleven bytes"}
        )
        await running.until(lambda: running.reasons() == {"prompt_too_large": 1}, "its dead letter")
