"""The gateway as a process of its own, between real HTTP clients and a real service."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from commands.broker.wire import free_ports
from tests.doors.gateway.running import CONTEXT, KEY, Gateway, gateway_process, running_gateway
from tests.doors.integrations.exporters import FAILED, LOGGED, SCORE

pytestmark = pytest.mark.asyncio(loop_scope="module")
FALLBACK = "timeout=0.2&fallback=gemini"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    """Run one worker and one gateway for all tests of this file."""
    async with running_gateway(kafka, tmp_path_factory.mktemp("gateway")) as running:
        yield running


async def test_decide_pay_judge_and_look_at_it_again(gateway: Gateway) -> None:
    await gateway.declare("full")
    async with gateway.client() as client:
        home = "/v1/routers/full"
        decision = (
            await client.post(f"{home}/decisions", json={"context": CONTEXT, "session_id": "s-1"})
        ).json()
        assert (
            decision["seq"] == 1
            and decision["repeat"] is False
            and len(decision["candidates"]) == 3
        )
        request_id = decision["request_id"]
        again = (
            await client.post(
                f"{home}/decisions", json={"context": CONTEXT, "request_id": request_id}
            )
        ).json()
        assert again == {**decision, "repeat": True}
        for _ in range(2):
            paid = await client.post(
                f"{home}/costs", json={"request_id": request_id, "cost_usd": 0.004}
            )
            assert (paid.status_code, paid.json()) == (202, {"accepted": 1})
        judged = await client.post(
            f"{home}/rewards", json=[{"request_id": request_id, "reward": 0.9, "source": "judge"}]
        )
        assert judged.status_code == 202
        books = await gateway.settled("full", settled=1, rewards_applied=1, decided=1)
        assert books["spend_usd"] == 0.004
        explained = (await client.get(f"{home}/decisions/{request_id}")).json()
        assert explained.pop("because") and explained["candidates"] == decision["candidates"]
        await gateway.service.until(
            lambda: gateway.service.lambda_of("full").get("settled") == 1, "books"
        )
        shown = (await client.get(home)).json()
        assert shown["router_id"] == "full" and shown["decided"] == 1
        assert (await client.get(f"{home}/decisions/nothing")).status_code == 404


async def test_a_decision_that_is_not_at_hand_is_found_on_the_log(gateway: Gateway) -> None:
    await gateway.declare("before")
    await gateway.service.send(
        "requests", {"router_id": "before", "request_id": "a/b ä", "context": CONTEXT}
    )
    await gateway.service.until(lambda: gateway.service.route("a/b ä"), "a decision")
    (port,) = free_ports(1)
    second = gateway_process(gateway.service, port, gateway.process.log.with_name("second.log"))
    other = Gateway(gateway.service, second, port)
    try:
        await other.ready()
        async with other.client() as client:
            found = await client.get("/v1/routers/before/decisions/a%2Fb%20%C3%A4")
            assert found.status_code == 200 and found.json()["seq"] == 1
            assert (await client.get("/v1/routers/before")).json()["decided"] == 1
    finally:
        second.terminate()
        assert await asyncio.to_thread(second.process.wait) == 0, second.tail()


async def test_payloads_of_others_are_taken_as_they_are(gateway: Gateway) -> None:
    await gateway.declare("foreign")
    letters = gateway.service.dead_letters
    async with gateway.client() as client:
        await client.post(
            "/v1/routers/foreign/decisions", json={"context": CONTEXT, "request_id": "r"}
        )
        logged = {
            "call_type": "acompletion",
            "status": "success",
            "litellm_call_id": "r",
            "response_cost": 0.003,
        }
        score = {"traceId": "r", "value": 0.5, "source": "EVAL"}
        for form, body in (("litellm", [logged]), ("langfuse", score)):
            taken = await client.post(f"/v1/routers/foreign/ingest/{form}", json=body)
            assert (taken.status_code, taken.json()) == (202, {"accepted": 1})
        headers = {
            "ce-specversion": "1.0",
            "ce-type": "paretobandit.rewards.v1",
            "ce-source": "/x",
            "ce-id": "1",
        }
        event = {"request_id": "r", "reward": 1, "source": "human"}
        assert (
            await client.post("/v1/routers/foreign/ingest/cloudevents", json=event, headers=headers)
        ).status_code == 202
        refused = await client.post(
            "/v1/routers/foreign/ingest/langfuse", json={"traceId": "r", "value": "good"}
        )
        assert (refused.status_code, refused.json()["reason"]) == (422, "invalid_field")
        await gateway.service.until(lambda: ("http:langfuse", -1, -1) in letters(), "a dead letter")
        letter, record = letters()["http:langfuse", -1, -1]
        assert (letter.stage, letter.reason, record.key) == ("ingest", "invalid_field", b"foreign")
        assert record.value == refused.request.content
        assert (await client.post("/v1/routers/foreign/ingest/other", json={})).status_code == 422
    assert (await gateway.settled("foreign", settled=1, rewards_applied=1))["spend_usd"] == 0.003


async def test_of_a_foreign_batch_the_good_items_are_booked_and_the_odd_ones_named_and_kept(
    gateway: Gateway,
) -> None:
    await gateway.declare("mixed")
    odd = {**LOGGED, "response_cost": -0.29}
    batch = json.dumps([FAILED, odd, LOGGED]).encode()
    packed = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    home = "/v1/routers/mixed"
    async with gateway.client() as client:
        asked = {"context": CONTEXT, "request_id": "r"}
        await client.post(f"{home}/decisions", json=asked)
        for _ in range(2):  # sent again, it counts once
            answer = await client.post(
                f"{home}/ingest/litellm", content=gzip.compress(batch), headers=packed
            )
            told = answer.json()
            assert (answer.status_code, told["accepted"]) == (207, 2)
            assert [one["index"] for one in told["booked"]] == [0, 2]
            assert [(one["index"], one["reason"]) for one in told["refused"]] == [
                (1, "cost_out_of_range")
            ]
        letters = gateway.service.dead_letters
        await gateway.service.until(lambda: ("http:litellm", -1, -1) in letters(), "a dead letter")
        _, record = letters()["http:litellm", -1, -1]
        assert json.loads(record.value or b"") == odd
        scores = [{**SCORE, "name": "toxicity", "value": 0.0}, SCORE]
        several = await client.post(f"{home}/ingest/langfuse", json=scores)
        assert several.status_code == 422 and "toxicity" in several.json()["detail"]
        chosen = await client.post(f"{home}/ingest/langfuse?score=correctness", json=scores)
        assert chosen.json() == {"accepted": 1, "passed_over": 1}
        wrong = await client.post(f"{home}/ingest/langfuse?score=corectness", json=scores)
        assert wrong.status_code == 422 and "accepted" not in wrong.json()
        assert all(name in wrong.json()["detail"] for name in ("corectness", "correctness"))
        # The right name has come before: the payload of another score is none of a mistyped one.
        other = await client.post(f"{home}/ingest/langfuse?score=correctness", json=scores[:1])
        assert (other.status_code, other.json()) == (202, {"accepted": 0, "passed_over": 1})
    books = await gateway.settled("mixed", settled=1, rewards_applied=1)
    assert books["spend_usd"] == pytest.approx(0.014)


async def test_bill_and_reward_of_a_fallback_name_it_where_the_caller_does_not(
    gateway: Gateway,
) -> None:
    await gateway.declare("fallen")
    home, worker = "/v1/routers/fallen", gateway.service.workers[-1]
    fell, said = ([f"{kind}-{number}" for number in range(40)] for kind in ("f", "s"))
    ids = [*fell, *said]
    asked = [{"context": CONTEXT, "request_id": one} for one in ids]
    logged = {"call_type": "acompletion", "status": "success", "response_cost": 0.003}
    async with gateway.client() as client:
        worker.freeze()
        try:
            fallen = await client.post(f"{home}/decisions?{FALLBACK}", json=asked[:40])
            assert {(one["model"], one.get("fallback")) for one in fallen.json()} == {
                ("gemini", True)
            }
            again = await client.post(f"{home}/decisions", json=asked[40:], params={"timeout": 0.2})
            assert {one["reason"] for one in again.json()} == {"no_decision"}
        finally:
            worker.thaw()
        # A caller that names the model on the bill need not name it again.
        bills = [{"request_id": one, "cost_usd": 0.003, "model": "gemini"} for one in said]
        await client.post(f"{home}/costs", json=bills)
        rewards = [{"request_id": one, "reward": 0.5, "source": "judge"} for one in ids]
        assert (await client.post(f"{home}/rewards", json=rewards)).status_code == 202
        logs = [{**logged, "litellm_call_id": one} for one in fell]
        assert (await client.post(f"{home}/ingest/litellm", json=logs)).status_code == 202
        await gateway.settled("fallen", decided=80, settled=80, rewards_applied=80)
        records = (await gateway.service.engine("fallen")).records
        assert {records[one].called for one in ids} == {"gemini"}
        assert {records[one].model for one in ids} - {"gemini"}


async def test_who_gets_the_decision_after_all_reports_what_was_decided(gateway: Gateway) -> None:
    await gateway.declare("after-all")
    home, worker = "/v1/routers/after-all", gateway.service.workers[-1]
    asked = [{"context": CONTEXT, "request_id": f"a-{number}"} for number in range(40)]
    async with gateway.client() as client:
        worker.freeze()
        try:
            await client.post(f"{home}/decisions?{FALLBACK}", json=asked)
        finally:
            worker.thaw()
        decided = (await client.post(f"{home}/decisions", json=asked)).json()
        rewards = [{"request_id": a["request_id"], "reward": 1, "source": "user"} for a in asked]
        await client.post(f"{home}/rewards", json=rewards)
        await gateway.settled("after-all", decided=40, rewards_applied=40)
        records = (await gateway.service.engine("after-all")).records
        assert {one["request_id"]: one["model"] for one in decided} == {
            name: record.called for name, record in records.items()
        }


async def test_refusals_of_the_service_are_problems(gateway: Gateway) -> None:
    await gateway.declare("strict")
    async with gateway.client() as client:
        refused = await client.post(
            "/v1/routers/strict/decisions", json={"context": CONTEXT, "max_price_per_1k": 0}
        )
        assert (refused.status_code, refused.json()["reason"]) == (422, "no_affordable_model")
        unknown = await client.post(
            "/v1/routers/nowhere/decisions", json={"context": CONTEXT, "request_id": "r"}
        )
        assert (unknown.status_code, unknown.json()["reason"], unknown.json()["request_id"]) == (
            404,
            "unknown_router",
            "r",
        )
        batch = [{"context": CONTEXT}, {"context": [*CONTEXT, 1.0]}, {"context": CONTEXT}]
        answers = (await client.post("/v1/routers/strict/decisions", json=batch)).json()
        assert [answer.get("seq") for answer in answers] == [1, None, 2]
        assert answers[1]["reason"] == "wrong_context"


async def test_a_frozen_worker_is_a_timeout_and_the_decision_comes_late(gateway: Gateway) -> None:
    await gateway.declare("frozen")
    body = {"context": CONTEXT, "request_id": "r"}
    async with gateway.client() as client:
        gateway.service.workers[-1].freeze()
        try:
            answer = await client.post("/v1/routers/frozen/decisions?timeout=0.1", json=body)
            assert (answer.status_code, answer.json()["reason"]) == (504, "no_decision")
            fallback = (
                await client.post(
                    "/v1/routers/frozen/decisions?timeout=0.1&fallback=gemini", json=body
                )
            ).json()
            assert fallback == {
                "router_id": "frozen",
                "request_id": "r",
                "model": "gemini",
                "fallback": True,
            }
            bill = {"request_id": "r", "input_tokens": 1000, "output_tokens": 0, "model": "gemini"}
            await client.post("/v1/routers/frozen/costs", json=bill)
        finally:
            gateway.service.workers[-1].thaw()
        late = (await client.post("/v1/routers/frozen/decisions", json=body)).json()
        assert late["seq"] == 1
    assert (await gateway.settled("frozen", settled=1))["spend_usd"] == pytest.approx(0.00125)


async def test_a_thousand_clients_are_served_beside_hostile_ones(gateway: Gateway) -> None:
    await gateway.declare("crowd")
    hostile = asyncio.gather(*(_hostile(gateway.port, number) for number in range(60)))
    home, authorized = (
        f"http://127.0.0.1:{gateway.port}/v1/routers/crowd",
        {"Authorization": f"Bearer {KEY}"},
    )
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=1000), headers=authorized
    ) as client:

        async def post(what: str, body: dict[str, Any]) -> int:
            for _ in range(10):
                # A connection that says nothing for long is closed, also one whose client has no
                # core to speak from: to send the same once more is free of effect.
                with suppress(aiohttp.ClientConnectionError):
                    async with client.post(f"{home}/{what}", json=body) as answer:
                        return answer.status
            raise AssertionError("ten connections in a row were closed")

        async def one(number: int) -> None:
            request_id = f"c-{number}"
            assert await post("decisions", {"context": CONTEXT, "request_id": request_id}) == 200
            assert await post("costs", {"request_id": request_id, "cost_usd": 2.0**-11}) == 202

        await asyncio.gather(*(one(number) for number in range(1000)))
    await hostile
    books = await gateway.settled("crowd", decided=1000, settled=1000)
    assert (books["spend_usd"], books["unmatched_cost_usd"]) == (1000 * 2.0**-11, 0.0)


ATTACKS = (
    b"",  # says nothing
    b"POST /v1/routers/crowd/decisions HTTP/1.1\r\nHost: x\r\nX-A: b\r\n",  # a head without end
    b"GET / HTTP/1.1\r\nHost: x\r\nX-Large: " + b"a" * 2**20,  # a head of a MiB
    b"POST /v1/routers/crowd/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n"
    + b"x" * 2**20,  # 100 MB
    b"\x16\x03\x01\x02\x00\x01\x00\x01" * 100,  # TLS
    b"POST /v1/routers/crowd/costs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n"
    b"Content-Length: 1\r\n\r\n{" * 50,
)


async def _hostile(port: int, number: int) -> None:
    """Send what no client sends, and leave without a word a moment later."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(ATTACKS[number % len(ATTACKS)])
        async with asyncio.timeout(3.0):
            await writer.drain()
            await reader.read()
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()


async def test_metrics_count_what_was_answered(gateway: Gateway) -> None:
    async with gateway.client() as client:
        await client.get("/v1/routers/nobodys")
        shown = (await client.get("/metrics")).text
    assert "pb_gateway_ready 1.0" in shown and "pb_gateway_waiting 0.0" in shown
    assert 'pb_gateway_requests_total{status="404",what="router"}' in shown
    assert json.dumps("full") not in shown
