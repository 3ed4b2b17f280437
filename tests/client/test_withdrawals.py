"""Labels that are withdrawn and sources that are measured, by each way in: the client over HTTP and
Kafka, its blocking form, and plain HTTP.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from paretobandit_client import Router, SyncRouter
from tests.doors.gateway.running import CONTEXT, KEY, Gateway, running_gateway
from tests.integration.service import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")
SOURCES = {"gold": "human", "judges": ["judge-v2"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Run one worker and one gateway for all tests of this file."""
    async with running_gateway(kafka, tmp_path_factory.mktemp("withdrawals")) as running:
        yield running


def over_kafka(gateway: Gateway) -> dict[str, Any]:
    """Return where the service is."""
    settings = gateway.service.settings
    return {
        "bootstrap": settings.bootstrap,
        "prefix": settings.prefix,
        "connect_timeout": PATIENCE,
        "timeout": PATIENCE,
    }


def over_http(gateway: Gateway) -> dict[str, Any]:
    """Return where the gateway is, and a key."""
    return {"url": f"http://127.0.0.1:{gateway.port}", "key": KEY, "timeout": PATIENCE}


async def standing(gateway: Gateway, router_id: str, pairs: int, applied: int) -> list[Any]:
    """Wait until a router's judge has so many pairs and so many requests have a label; return how
    its sources stand."""

    def found() -> list[Any] | None:
        state = gateway.service.lambda_of(router_id)
        sources = state.get("sources") or [{}, {}]
        counted = sources[-1].get("pairs") == pairs and state["rewards_applied"] == applied
        return sources if counted else None

    await gateway.service.until(found, f"{router_id} with {pairs} pairs")
    return found() or []


@pytest.mark.parametrize("access", [over_kafka, over_http])
async def test_a_label_that_is_withdrawn_is_as_if_it_had_never_come(
    gateway: Gateway, access: Callable[[Gateway], dict[str, Any]]
) -> None:
    router_id = f"w-{access.__name__}"
    await gateway.declare(router_id, sources=SOURCES)
    async with Router(router_id, **access(gateway)) as asking:
        decision = await asking.route(context=CONTEXT)
        await decision.reward(0.9, source="judge-v2")
        await decision.reward(0.2, source="human:anna")
        await asking.reward(decision.request_id, 0.6, source="human:ben")
        gold, judge = await standing(gateway, router_id, 1, 1)
        assert (gold["double_labels"], gold["apart"]) == (1, 0.4)
        assert judge["models"][0]["offset"]["value"] == 0.5
        await decision.withdraw(source="human:anna")
        await asking.withdraw(decision.request_id, source="human:ben", cant_tell=True)
        _, judge = await standing(gateway, router_id, 0, 1)
        assert judge["models"] == []
        await asking.withdraw(decision.request_id, source="judge-v2", revision=1)
        await standing(gateway, router_id, 0, 0)
        # A label of the revision that was withdrawn says nothing new; a higher one does.
        await asking.reward(decision.request_id, 0.4, source="human:anna")
        await asking.reward(decision.request_id, 0.5, source="human:anna", revision=2)
        await standing(gateway, router_id, 0, 1)


async def test_threads_withdraw_as_tasks_do(gateway: Gateway) -> None:
    await gateway.declare("w-threads", sources=SOURCES)

    def work() -> str:
        with SyncRouter("w-threads", **over_kafka(gateway)) as asking:
            first, second = asking.route(context=CONTEXT), asking.route(context=CONTEXT)
            for decision in (first, second):
                decision.reward(0.5, source="human")
                decision.reward(0.7, source="judge-v2")
            first.withdraw(source="human")
            asking.withdraw(second.request_id, source="judge-v2", revision=3)
            with pytest.raises(ValueError, match="revision above"):
                asking.withdraw(second.request_id, source="human", revision=0)
            return second.request_id

    await asyncio.to_thread(work)
    await standing(gateway, "w-threads", 0, 2)


async def test_a_label_of_an_attempt_is_withdrawn_as_that_of_a_decision(gateway: Gateway) -> None:
    verifiers = {"tests": {"usd": 0.0}}
    await gateway.declare("w-attempts", sources=SOURCES, verifiers=verifiers)

    def work(ways: dict[str, Any]) -> None:
        with SyncRouter("w-attempts", **ways) as asking:
            for attempt in asking.attempts(context=CONTEXT):
                attempt.reward(0.5, source="human")
                attempt.reward(0.7, source="judge-v2")
                attempt.withdraw(source="human")

    async with Router("w-attempts", **over_http(gateway)) as asking:
        async for attempt in asking.attempts(context=CONTEXT):
            await attempt.reward(0.2, source="human")
            await attempt.reward(0.9, source="judge-v2")
            await standing(gateway, "w-attempts", 1, 1)
            await attempt.withdraw(source="human")
            await standing(gateway, "w-attempts", 0, 1)
            await attempt.withdraw(source="judge-v2")
    await standing(gateway, "w-attempts", 0, 0)
    await asyncio.to_thread(work, over_kafka(gateway))
    await standing(gateway, "w-attempts", 0, 1)


async def test_plain_http_withdraws_and_says_what_is_wrong(gateway: Gateway) -> None:
    await gateway.declare("w-plain", sources=SOURCES)
    home = "/v1/routers/w-plain"
    async with gateway.client() as client:
        asked = await client.post(f"{home}/decisions", json={"context": CONTEXT})
        label = {"request_id": asked.json()["request_id"], "source": "human"}
        for event in ({"reward": 1}, {"reward": None, "revision": 1}):
            sent = await client.post(f"{home}/rewards", json=label | event)
            assert sent.status_code == 202, sent.text
        await standing(gateway, "w-plain", 0, 0)
        for wrong, why in (
            ({"reward": None}, "revision of 1 or more"),
            ({}, "reward is missing"),
            ({"reward": 0.5, "cant_tell": True}, "cant_tell"),
        ):
            refused = await client.post(f"{home}/rewards", json=label | wrong)
            assert refused.status_code in {400, 422}
            assert why in refused.json()["detail"]
