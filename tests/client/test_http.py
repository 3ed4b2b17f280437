"""The client over HTTP, through a real gateway to a real service: what a caller can rely on is what
it is over Kafka.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from paretobandit_client import (
    NoDecision,
    Refused,
    Router,
    SyncRouter,
    Undelivered,
    Unreachable,
)
from tests.doors.gateway.running import CONTEXT, KEY, Gateway, gateway_process, running_gateway
from tests.integration.service import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Run one worker and one gateway for all tests of this file."""
    async with running_gateway(kafka, tmp_path_factory.mktemp("http")) as running:
        yield running


def access(gateway: Gateway) -> dict[str, Any]:
    """Return where the gateway is, and a key."""
    return {"url": f"http://127.0.0.1:{gateway.port}", "key": KEY}


def client(gateway: Gateway, router_id: str, **options: Any) -> Router:
    """Return a client of a router, patient unless told otherwise."""
    return Router(router_id, **access(gateway), **{"timeout": PATIENCE, **options})


async def test_a_request_is_routed_paid_and_judged(gateway: Gateway) -> None:
    await gateway.declare("h-plain")
    async with client(gateway, "h-plain") as asking:
        decision = await asking.route(
            context=CONTEXT, session="s-17", session_budget_usd=0.5, metadata={"a": 1}
        )
        assert decision.model in {"llama", "mistral", "gemini"} and not decision.fallback
        assert decision.route is not None and decision.route.seq == 1 and decision.route.candidates
        assert decision.route.session_left_usd == 0.5 - decision.route.expected_cost_usd
        await decision.cost(cost_usd=0.004)
        await decision.reward(0.9, source="judge")
        again = await asking.route(context=CONTEXT, request_id=decision.request_id)
        assert again.route is not None and again.route.repeat and again.model == decision.model
        await asking.reward(decision.request_id, 0.4, source="human")
    books = await gateway.settled("h-plain", settled=1, rewards_applied=1, decided=1)
    assert books["spend_usd"] == 0.004


async def test_a_cut_prompt_and_one_that_is_an_image_are_decided(gateway: Gateway) -> None:
    await gateway.declare("h-cut")
    async with client(gateway, "h-cut", fallback="llama") as asking:
        cut: dict[str, Any] = {"prompt": "cut \ud83d", "context": CONTEXT}
        for asked in (cut, {"needs": {"vision": True}}):
            assert not (await asking.route(**asked)).fallback


async def test_refusals_come_with_their_reason(gateway: Gateway) -> None:
    await gateway.declare("h-strict")
    async with client(gateway, "h-strict", fallback="llama") as asking:
        with pytest.raises(Refused) as refused:
            await asking.route(context=[*CONTEXT, 1.0], request_id="wrong")
        assert (refused.value.reason, refused.value.request_id) == ("wrong_context", "wrong")
        answers = await asking.route_many(
            [{"context": CONTEXT}, {"context": CONTEXT, "max_price_per_1k": 1e-9}]
        )
        assert isinstance(answers[1], Refused) and answers[1].reason == "no_affordable_model"
        assert not isinstance(answers[0], Refused)
    assert (asking.counts.refused, asking.counts.decided) == (2, 1)


async def test_a_fallback_is_paid_once_and_the_late_decision_teaches_nothing(
    gateway: Gateway,
) -> None:
    await gateway.declare("h-open")
    async with client(gateway, "h-open", fallback="gemini") as asking:
        gateway.service.workers[-1].freeze()
        try:
            asked = [{"context": CONTEXT, "request_id": f"f-{number}"} for number in range(100)]
            decisions = await asking.route_many(asked, timeout=0.2)
            for decision in decisions:
                assert not isinstance(decision, Refused)
                assert decision.fallback and decision.model == "gemini" and decision.route is None
                await decision.cost(input_tokens=1000, output_tokens=1000)
                await decision.reward(0.5, source="judge")
        finally:
            gateway.service.workers[-1].thaw()
        books = await gateway.settled("h-open", decided=100, settled=100, rewards_applied=100)
        again = await asking.route(context=CONTEXT, request_id="f-7")
        assert again.route is not None and not again.fallback
    assert books["spend_usd"] == pytest.approx(100 * (1000 * 1.25e-6 + 1000 * 10e-6))
    assert books["unmatched_cost_usd"] == 0.0
    assert {
        record.called for record in (await gateway.service.engine("h-open")).records.values()
    } == {"gemini"}


async def test_a_gateway_that_is_killed_loses_no_request_and_no_bill(gateway: Gateway) -> None:
    await gateway.declare("h-crowd")
    count, usd, done = 2000, 2.0**-11, 0

    async def killed() -> None:
        await gateway.service.until(lambda: done >= count // 4, "decisions", poll=False)
        gateway.process.kill()
        log = gateway.process.log.with_name("again.log")
        gateway.process = gateway_process(gateway.service, gateway.port, log)
        gateway.service.workers.insert(0, gateway.process)
        await gateway.ready()

    async with client(gateway, "h-crowd", timeout=120.0) as asking:

        async def one(number: int) -> int:
            nonlocal done
            decision = await asking.route(context=CONTEXT, request_id=f"c-{number}")
            await decision.cost(cost_usd=usd)
            done += 1
            assert decision.route is not None
            return decision.route.seq

        trouble = asyncio.create_task(killed())
        seqs = await asyncio.gather(*(one(number) for number in range(count)))
        await trouble
    assert sorted(seqs) == list(range(1, count + 1))
    books = await gateway.settled("h-crowd", decided=count, settled=count)
    assert (books["spend_usd"], books["unmatched_cost_usd"]) == (count * usd, 0.0)


async def test_a_wrong_key_is_named_at_the_start(gateway: Gateway) -> None:
    wrong = {**access(gateway), "key": f"{KEY}x"}
    with pytest.raises(Unreachable, match="unauthorized"):
        await Router("chat", **wrong).__aenter__()
    async with Router("chat", fallback="small", **wrong) as asking:
        assert (await asking.route("Hello")).fallback
        with pytest.raises(Undelivered, match="unauthorized"):
            await asking.cost("r", cost_usd=0.1)


async def test_without_a_fallback_silence_is_an_error(gateway: Gateway) -> None:
    await gateway.declare("h-silent")
    gateway.service.workers[-1].freeze()
    try:
        async with client(gateway, "h-silent", timeout=0.05) as asking:
            with pytest.raises(NoDecision, match="no fallback"):
                await asking.route(context=CONTEXT)
    finally:
        gateway.service.workers[-1].thaw()


async def test_threads_use_the_same_router(gateway: Gateway) -> None:
    await gateway.declare("h-threads")

    def blocking() -> None:
        with SyncRouter("h-threads", timeout=PATIENCE, **access(gateway)) as asking:
            decision = asking.route(context=CONTEXT)
            decision.cost(cost_usd=0.001)
            decision.reward(0.5, source="judge")

    await asyncio.to_thread(blocking)
    await gateway.settled("h-threads", settled=1, rewards_applied=1)


@pytest.mark.parametrize("url", ["", "gateway", "ftp://gateway", "http://", "http://a b"])
async def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address"):
        Router("chat", url=url)


async def test_kafka_and_http_do_not_mix() -> None:
    with pytest.raises(ValueError, match="bootstrap"):
        Router("chat", url="http://gateway", bootstrap="kafka:9092")
    with pytest.raises(ValueError, match="url"):
        Router("chat", key="pbk_x")


async def test_who_goes_over_http_imports_no_kafka() -> None:
    code = (
        "import sys; from paretobandit_client import Router; Router('a', url='http://g'); "
        "print('aiokafka' in sys.modules)"
    )
    run = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
