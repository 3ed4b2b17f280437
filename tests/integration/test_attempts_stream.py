"""Attempts on a real worker: plans in decisions, bills and verdicts of each call, dead letters, and
a history that is replayed to the bit and proved."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from router_state.state import invariants
from tests.integration.commands import done, done_json, run
from tests.integration.service import (
    RunningService,
    cost,
    request,
    router,
    running_service,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

VERIFIERS = {"tests": {"usd": 0, "exact": True}, "judge": {"usd": 0.00001, "bins": 3}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run one worker."""
    folder = tmp_path_factory.mktemp("attempts")
    async with running_service(kafka, folder, PB_ORPHAN_WAIT="2") as one:
        await one.ready(one.worker(instance="one"))
        yield one


def verdict(router_id: str, request_id: str, value: float, **more: Any) -> dict[str, Any]:
    return {
        "router_id": router_id,
        "request_id": request_id,
        "verifier": "tests",
        "verdict": value,
        **more,
    }


async def decided(service: RunningService, router_id: str, request_id: str, n: int) -> Any:
    await service.send("requests", request(router_id, request_id, seed=n))
    await service.until(lambda: service.route(request_id), "a decision")
    return service.route(request_id)


async def test_plans_are_billed_by_attempt_replayed_to_the_bit_and_proved(
    service: RunningService, home: str
) -> None:
    declared = router(home, budget_usd_per_request=0.002, verifiers=VERIFIERS)
    await service.send("routers", declared)
    spent, planned, billed = 0.0, 0, 0
    for n in range(60):
        name = f"a{n}"
        if n % 7 == 3:  # feedback that overtakes its decision
            await service.send("costs", cost(home, name, 0.0001))
            await service.send("rewards", verdict(home, name, 1.0))
        route = await decided(service, home, name, n)
        plan = route.get("plan") or [{"model": route["model"]}]
        assert plan[0]["model"] == route["model"]
        spent += 0.0001
        billed += 1
        if n % 7 != 3:
            await service.send("costs", cost(home, name, 0.0001))
            passed, fails = n % 3 == 0, n % 11 == 5  # no verdict comes where the verifier fails
            if not fails:
                await service.send("rewards", verdict(home, name, float(passed)))
            if len(plan) > 1:
                planned += 1
                assert 0.0 < route["propensity"] <= route["first_propensity"] <= 1.0
                if not (passed or fails) and n % 2:
                    spent += 0.003
                    for _ in range(2):  # the same once more changes nothing
                        await service.send("costs", cost(home, name, 0.003, attempt=1))
        if n % 4 == 0:
            await service.send(
                "rewards",
                {"router_id": home, "request_id": name, "reward": 0.9, "source": "judge"},
            )
    assert planned > 10
    await service.until(
        lambda: abs(service.lambda_of(home).get("spend_usd", 0.0) - spent) < 1e-9, "the bills"
    )
    await service.until(lambda: service.lambda_of(home).get("rewards_applied") == 15, "rewards")
    engine = await service.engine(home)
    invariants.check(engine.state, engine.records)
    assert engine.state.settled == billed
    again = await asyncio.to_thread(done_json, service.settings, "replay", "--verify", router=home)
    assert again["compared"] == again["identical"] == 60
    assert again["differences"] == again["unprovable"] == {}
    audited = await asyncio.to_thread(done_json, service.settings, "audit")
    assert audited["violations"] == {}
    assert "learned" not in audited["unprovable"]


def answers(service: RunningService, request_id: str) -> list[dict[str, Any]]:
    return [route for route in service.routes() if route["request_id"] == request_id]


async def test_requests_follow_others_and_their_history_is_replayed_to_the_bit(
    service: RunningService, home: str
) -> None:
    await service.send(
        "routers",
        router(home, budget_usd_per_request=0.002, verifiers=VERIFIERS, max_attempts=3),
    )
    for n in range(20):
        first, second, third = (f"f{n}-{turn}" for turn in range(3))
        route = await decided(service, home, first, n)
        model = route["model"]
        if n % 5 == 4:  # a verdict that overtakes its bill, and is revised
            await service.send("rewards", verdict(home, first, 1.0))
            await service.send("rewards", verdict(home, first, 0.0, revision=1))
        await service.send("costs", cost(home, first, 0.0001))
        seen: dict[str, Any] = {"follows": first}
        if n % 2:
            seen["verdicts"] = {"tests": 0, "judge": 0.2}
        else:
            seen["signals"] = {"tests_passed": 0.2, "repeats": 2}
        for _ in range(2):  # the same once more is the same answer
            await service.send("requests", {**request(home, second, seed=n), **seen})
        await service.until(lambda name=second: len(answers(service, name)) == 2, "both answers")
        once, again = answers(service, second)
        assert (once["model"], again["model"], again["repeat"]) == (
            once["model"],
            once["model"],
            True,
        )
        assert once["chain"] == again["chain"] == {"follows": first, "number": 2, "tried": [model]}
        assert once["model"] != model
        # Late, twice, and out of order: bills and verdicts of what was followed.
        await service.send("rewards", verdict(home, first, 0.0, attempt=0))
        await service.send("costs", cost(home, second, 0.0002))
        await service.send("costs", cost(home, first, 0.0001))
        await service.send(
            "requests",
            {**request(home, third, seed=n), "follows": second, "signals": {"severity": 1}},
        )
        await service.until(lambda name=third: answers(service, name), "the third answer")
        (route,) = answers(service, third)
        assert route["chain"]["number"] == 3
        assert route["chain"]["tried"] == [model, once["model"]]
    label = {"router_id": home, "request_id": "f1-1", "reward": 0.5, "source": "judge"}
    await service.send("rewards", label)
    lost = {**request(home, "lost", seed=1), "follows": "nobody's"}
    await service.send("requests", lost)
    await service.until(lambda: service.route("lost"), "a decision")
    (plain,) = answers(service, "lost")
    assert plain["chain"] == {"follows": "nobody's", "number": 1, "known": False}
    before = set(service.dead_letters())
    wrong: dict[str, dict[str, Any]] = {
        "wrong": {"follows": "f0-0", "verdicts": {"nobody": 1}},
        "alone": {"verdicts": {"tests": 1}},
        "self": {"follows": "self"},
    }
    for name, more in wrong.items():
        await service.send("requests", {**request(home, name, seed=1), **more})
    await service.until(lambda: len(set(service.dead_letters()) - before) == 3, "three letters")
    reasons = {
        service.dead_letters()[one][0].reason for one in set(service.dead_letters()) - before
    }
    assert reasons == {"unknown_verifier", "missing_field", "invalid_field"}
    await service.until(lambda: service.lambda_of(home).get("rewards_applied") == 1, "the label")
    engine = await service.engine(home)
    invariants.check(engine.state, engine.records)
    verified = await asyncio.to_thread(
        done_json, service.settings, "replay", "--verify", router=home
    )
    assert verified["compared"] == verified["identical"] == 61
    assert verified["differences"] == verified["unprovable"] == {}
    audited = await asyncio.to_thread(done_json, service.settings, "audit")
    assert audited["violations"] == {}
    said = await asyncio.to_thread(done, service.settings, "explain", "f3-2", router=home)
    assert "It follows f3-1 as request 3 of its chain" in said


async def test_what_no_plan_has_is_a_dead_letter_and_nothing_is_booked(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home, verifiers={"tests": {"usd": 0, "exact": True}}))
    await decided(service, home, "d", 1)
    before = set(service.dead_letters())
    await service.send("costs", cost(home, "d", 0.5, attempt=5))
    await service.send("rewards", verdict(home, "d", 1.0, verifier="nobody"))
    await service.send("rewards", verdict(home, "d", 2.0))
    await service.until(
        lambda: len(set(service.dead_letters()) - before) == 3, "three dead letters"
    )
    new = set(service.dead_letters()) - before
    reasons = {service.dead_letters()[one][0].reason for one in new}
    assert reasons == {"attempt_beyond_plan", "unknown_verifier", "verdict_out_of_range"}
    engine = await service.engine(home)
    assert engine.state.spend_usd == 0.0
    invariants.check(engine.state, engine.records)


async def test_a_request_without_verifiers_has_no_plan(service: RunningService, home: str) -> None:
    await service.send("routers", router(home, verifiers=VERIFIERS))
    for n in range(5):
        asked = {**request(home, f"n{n}", seed=n), "verifiers": []}
        await service.send("requests", asked)
        await service.until(lambda n=n: service.route(f"n{n}"), "a decision")
        assert "plan" not in (service.route(f"n{n}") or {})


async def test_the_command_line_declares_verifiers_and_follows_plans_by_hand(
    service: RunningService, home: str
) -> None:
    async def said(*words: str, stdin: str | None = None, router: str | None = home) -> str:
        return await asyncio.to_thread(done, service.settings, *words, stdin=stdin, router=router)

    await service.send("routers", router(home, budget_usd_per_request=0.002))
    await service.until(lambda: service.lambda_of(home), "the router")
    declared = ("--verifiers", "tests=0:exact,judge=0.00001:3", "--max-attempts", "2")
    shown = await said("routers", "set", home, *declared, router=None)
    assert "In force at offset" in shown
    told = await asyncio.to_thread(done_json, service.settings, "verifiers", "--json", router=home)
    assert [(one["verifier"], one["exact"]) for one in told] == [("judge", False), ("tests", True)]
    for n in range(60):
        context = json.dumps(request(home, "", seed=n)["context"])
        shown = await said("request", "--context", "-", "--id", f"c{n}", stdin=context)
        plan = (await route_of(service, f"c{n}")).get("plan") or []
        if len(plan) > 1 and plan[0]["verify"] == "tests":
            break
    assert "Attempt 0: " in shown and "tests looks at the answer" in shown
    assert f"pbstream verdict c{n} tests pass" in shown
    await said("cost", f"c{n}", "0.0001")
    shown = await said("verdict", f"c{n}", "tests", "fail")
    assert f"call {plan[1]['model']}, attempt 1." in shown
    await said("cost", f"c{n}", "0.003", "--attempt", "1")
    await said("reward", f"c{n}", "1", "--attempt", "1")
    shown = await said("explain", f"c{n}")
    assert "Cost of attempt 1" in shown and "Reward for attempt 1: 1 by" in shown
    engine = await service.engine(home)
    assert engine.state.spend_usd == pytest.approx(0.0031)
    invariants.check(engine.state, engine.records)
    table = await said("verifiers")
    assert "tests (the truth)" in table and "passes right" in table
    assert table.endswith("pbstream dashboard\n")  # which shows all routers
    shown = await said("request", "--context", "-", "--verifier", "none", stdin=context)
    assert "Attempt" not in shown
    await said("routers", "set", home, "--verifiers", "none", router=None)
    refused = await asyncio.to_thread(run, service.settings, "verifiers", router=home)
    assert refused.exit_code == 1 and "--verifiers tests=0:exact" in refused.output


async def route_of(service: RunningService, request_id: str) -> dict[str, Any]:
    await service.until(lambda: service.route(request_id), "a decision")
    return dict(service.route(request_id) or {})
