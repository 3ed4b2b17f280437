"""Models as they are, on a real worker: what they can do, whether they answer, what
they have in their caches."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from router_state.sessions.sessions import Sessions
from router_state.state import invariants
from tests.integration.commands import done_json
from tests.integration.service import (
    MODELS,
    RunningService,
    cost,
    request,
    router,
    running_service,
)
from tests.router_state.core_reference import having

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(
    kafka: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """Run one worker."""
    async with running_service(kafka, tmp_path_factory.mktemp("real"), PB_ORPHAN_WAIT="2") as one:
        await one.ready(one.worker(instance="one"))
        yield one


async def test_a_request_goes_to_a_model_that_can_or_is_refused_by_its_need(
    service: RunningService, home: str
) -> None:
    offers = {"llama": {"tools": True}, "mistral": {}, "gemini": {"context_window": 1000}}
    models = {name: {**MODELS[name], "offers": offers[name]} for name in MODELS}
    await service.send("routers", router(home, models=models))
    await service.send("requests", request(home, "can", needs={"tools": True}))
    await service.send("requests", request(home, "can't", needs={"vision": True}))
    await service.until(lambda: service.route("can"), "a decision")
    await service.until(service.dead_letters, "a dead letter")
    route = service.route("can")
    assert route and route["model"] == "llama"
    assert {one["model"]: one["excluded"] for one in route["candidates"]} == {
        "llama": None,
        "mistral": "no_tools",
        "gemini": "no_tools",
    }
    ((refused, _),) = service.dead_letters().values()
    assert refused.reason == "no_capable_model" and "vision" in refused.message


async def test_a_model_that_fails_is_left_out_and_its_fallback_is_paid_and_learns(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    for n in range(5):
        await service.send("requests", request(home, f"f{n}", allowed_models=["llama"]))
        await service.until(lambda n=n: service.route(f"f{n}"), "a decision")
        await service.send("costs", cost(home, f"f{n}", 0.0, status="error"))
    await service.until(lambda: service.lambda_of(home).get("settled") == 5, "the bills")
    await service.send("requests", request(home, "next"))
    await service.until(lambda: service.route("next"), "a decision")
    route = service.route("next")
    assert route and route["model"] != "llama"
    assert {one["model"]: one["excluded"] for one in route["candidates"]}["llama"] == "down"
    (other,) = {"mistral", "gemini"} - {route["model"]}
    assert route["fallbacks"] == [other]
    await service.send("costs", cost(home, "next", 0.0, status="timeout", latency_ms=30_000))
    await service.send("costs", cost(home, "next", 0.004, model=other, revision=1))
    await service.until(lambda: service.lambda_of(home).get("spend_usd") == 0.004, "the bill")
    engine = await service.engine(home)
    invariants.check(engine.state, engine.records)
    assert engine.records["next"].called == other
    assert engine.state.arms[other].costs.bills == 1.0
    alerts = [json.loads(record.value)["kind"] for record in service.records["alerts"]]
    assert "model_down" in alerts


async def test_a_later_turn_of_a_session_is_expected_to_cost_less_where_it_was_before(
    service: RunningService, home: str
) -> None:
    cached = {name: {**MODELS[name], "cached_input_price_per_m": 0.01} for name in MODELS}
    await service.send("routers", router(home, models=cached, budget_usd_per_request=0.05))
    for n in range(20):
        await service.send("requests", request(home, f"k{n}", seed=n, input_tokens=10_000))
    for n in range(2):
        turn = request(home, f"s{n}", seed=n, input_tokens=10_000, session_id="talk")
        await service.send("requests", {**turn, "allowed_models": ["gemini"] if n == 0 else None})
    await service.until(lambda: service.route("s1"), "decisions")
    route, first = service.route("s1"), service.route("k19")
    assert route and first
    now, then = (
        {one["model"]: one["expected_cost_usd"] for one in decided["candidates"]}
        for decided in (route, first)
    )
    # Of 0.0125 dollars of input nine tenths and more are saved at the model that has seen it.
    assert then["gemini"] - now["gemini"] > 0.008
    await service.send(
        "costs", cost(home, "s1", 0.002, input_tokens=10_000, cached_input_tokens=9_000)
    )
    await service.until(lambda: service.lambda_of(home).get("settled") == 1, "the bill")
    engine = await service.engine(home)
    invariants.check(engine.state, engine.records)
    session = having(engine.state, Sessions).known.find("talk")
    assert session is not None and session.turns == 2 and "gemini" in session.warm


async def test_conversations_outages_and_times_are_replayed_to_the_bit_and_proved(
    service: RunningService, home: str
) -> None:
    cached = {name: {**MODELS[name], "cached_input_price_per_m": 0.01} for name in MODELS}
    declared = router(
        home, models=cached, budget_usd_per_request=0.002, latency_target={"p95_ms": 2000}
    )
    await service.send("routers", declared)
    judged: dict[int, int] = {}
    for n in range(60):
        turn = request(home, f"q{n}", seed=n, input_tokens=1_500 + 40 * n, session_id=f"s{n % 4}")
        await service.send("requests", turn)
        await service.until(lambda n=n: service.route(f"q{n}"), "a decision")
        route = service.route(f"q{n}")
        assert route
        times = {"latency_ms": 300 + 97 * (n * n % 41), "first_token_ms": 50 + n}
        if n % 9 == 4:
            failed = cost(home, f"q{n}", 0.0, status="timeout", **times)
            await service.send("costs", failed)
            other = (route.get("fallbacks") or [route["model"]])[0]
            await service.send(
                "costs", cost(home, f"q{n}", 0.002, model=other, revision=1, **times)
            )
        else:
            read = {"input_tokens": 1_500 + 40 * n, "cached_input_tokens": 1_000}
            await service.send("costs", cost(home, f"q{n}", 0.001, **read, **times))
        if n % 10 == 7:
            whole = {"router_id": home, "session_id": f"s{n % 4}", "reward": 0.8, "source": "user"}
            await service.send("rewards", {**whole, "revision": n})
            # The label is about the requests that were decided before it was booked.
            judged[n] = n // 4 + 1
            labels = sum({m % 4: count for m, count in judged.items()}.values())
            await service.until(
                lambda labels=labels: service.lambda_of(home).get("rewards_applied") == labels,
                "the session's label",
            )
    await service.until(lambda: service.lambda_of(home).get("settled") == 60, "the bills")
    # The sessions s1 and s3 are judged, up to q57 and q47.
    assert service.lambda_of(home)["rewards_applied"] == 27
    standing = service.lambda_of(home)["latency"]
    assert standing["known"] == 60 and standing["p95_ms"] == 2000
    candidates = (service.route("q59") or {})["candidates"]
    assert all(0.0 <= one["slow"] <= 1.0 for one in candidates)
    engine = await service.engine(home)
    invariants.check(engine.state, engine.records)
    verdict = await asyncio.to_thread(
        done_json, service.settings, "replay", "--verify", router=home
    )
    assert verdict["compared"] == verdict["identical"] == 60
    assert verdict["differences"] == verdict["unprovable"] == {}
    audited = await asyncio.to_thread(done_json, service.settings, "audit")
    assert audited["violations"] == {} and "learned" not in audited["unprovable"]


async def test_a_reward_of_a_forgotten_session_is_a_dead_letter(
    service: RunningService, home: str
) -> None:
    await service.send("routers", router(home))
    before = set(service.dead_letters())
    whole = {"router_id": home, "session_id": "nobody's", "reward": 0.8, "source": "user"}
    await service.send("rewards", whole)
    await service.until(lambda: set(service.dead_letters()) - before, "a dead letter")
    (new,) = set(service.dead_letters()) - before
    assert service.dead_letters()[new][0].reason == "orphan_reward"
