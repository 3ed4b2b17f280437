"""What a gateway refuses before any event leaves it, and how it says so."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from schemas import Reason
from streams.broker.wire import free_ports
from streams.gateway.app import build_gateway
from streams.gateway.keys import Keys, new_key
from streams.gateway.problems import MEDIA_TYPE, OWN
from streams.settings import Settings

KEY, LINE = new_key("acme", routers="acme.*")
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
DECISIONS, COSTS, REWARDS = (
    f"/v1/routers/acme.chat/{what}" for what in ("decisions", "costs", "rewards")
)
BILL = {"request_id": "r", "cost_usd": 0.1}


@pytest.fixture
async def calls() -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a gateway without Kafka: whatever gets through the door waits in vain."""
    (port,) = free_ports(1)
    settings = Settings(
        bootstrap=f"127.0.0.1:{port}",
        gateway_rate=0.01,
        gateway_batch=5,  # the bucket holds as many, and gets no more while a test runs
        gateway_timeout=0.05,
        gateway_body_bytes=4096,
    )
    app = build_gateway(settings, Keys.parse(LINE))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://gateway", headers=AUTHORIZED
    ) as client:
        yield client


def reason(answer: httpx.Response) -> str:
    """Return the reason of a problem, after a look at its form."""
    body = answer.json()
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert (
        body["status"] == answer.status_code
        and body["type"] == f"urn:paretobandit:{body['reason']}"
        and body["title"]
    )
    return str(body["reason"])


@pytest.mark.parametrize(
    "key",
    ["", "Bearer x", f"Bearer {KEY}x", f"Basic {KEY}"],
    ids=["none", "short", "long", "scheme"],
)
async def test_without_a_valid_key_nothing_is_answered(calls: httpx.AsyncClient, key: str) -> None:
    for method, path in (
        ("POST", DECISIONS),
        ("POST", COSTS),
        ("GET", "/v1/routers/acme.chat"),
        ("GET", f"{DECISIONS}/r"),
    ):
        answer = await calls.request(method, path, headers={"Authorization": key})
        assert (answer.status_code, reason(answer)) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_opens_its_routers_only(calls: httpx.AsyncClient) -> None:
    for path in ("/v1/routers/other", "/v1/routers/acme/decisions/r"):
        assert reason(await calls.get(path)) == "forbidden"
    assert reason(await calls.post("/v1/routers/other/costs", json=BILL)) == "forbidden"


async def test_a_payload_that_cannot_be_kept_either_is_left_to_its_sender(
    calls: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.gateway.letters.SECONDS", 0.2)
    answer = await calls.post("/v1/routers/acme.chat/ingest/langfuse", json={"value": "good"})
    assert (answer.status_code, reason(answer)) == (503, "undelivered")


@pytest.mark.parametrize(
    ("path", "body", "status", "why"),
    [
        (DECISIONS, b"{", 400, "malformed_json"),
        (DECISIONS, b"\xff\xfe", 400, "malformed_json"),
        (DECISIONS, b"[" * 4000, 400, "malformed_json"),
        (COSTS, b'{"request_id": "r", "cost_usd": NaN}', 400, "malformed_json"),
        (COSTS, b'{"request_id": "r", "cost_usd": 1e999}', 400, "malformed_json"),
        (COSTS, b"", 400, "malformed_json"),
        (COSTS, b"7", 422, "malformed_event"),
        (COSTS, b"[]", 422, "malformed_event"),
        (COSTS, b"[7]", 422, "malformed_event"),
        (COSTS, b"{}", 422, "missing_field"),
        (COSTS, b'{"request_id": "r", "cost_usd": -1}', 422, "cost_out_of_range"),
        (COSTS, b'{"request_id": "r\\u0000", "cost_usd": 1}', 422, "invalid_field"),
        (
            REWARDS,
            b'{"request_id": "r", "reward": 2, "source": "judge"}',
            422,
            "reward_out_of_range",
        ),
        (DECISIONS, b'{"prompt": " "}', 422, "empty_prompt"),
        (DECISIONS, b"{}", 422, "missing_prompt"),
        (DECISIONS, b'{"context": [1, 2]}', 422, "wrong_context"),
        (DECISIONS, b'{"prompt": "x", "allowed_models": []}', 422, "no_allowed_model"),
        (COSTS, json.dumps([BILL] * 6).encode(), 413, "too_many_events"),
        (DECISIONS, json.dumps({"prompt": "x" * 5000}).encode(), 413, "body_too_large"),
        ("/v1/routers/a b/costs", b"{}", 422, "invalid_field"),
        ("/v1/routers", b"{}", 404, "not_found"),
        ("/v1/routers/acme.chat", b"{}", 405, "method_not_allowed"),
    ],
)
async def test_a_wrong_request_is_refused_with_its_reason(
    calls: httpx.AsyncClient, path: str, body: bytes, status: int, why: str
) -> None:
    answer = await calls.post(path, content=body)
    assert (answer.status_code, reason(answer)) == (status, why)
    assert why in OWN or why in {known.value for known in Reason}


async def test_a_body_of_unknown_length_is_bounded_as_well(calls: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield b"x" * 1024

    answer = await calls.post(DECISIONS, content=endless())
    assert (answer.status_code, reason(answer), answer.headers["connection"]) == (
        413,
        "body_too_large",
        "close",
    )
    assert sent < 10


async def test_a_batch_with_a_wrong_event_is_refused_as_a_whole(calls: httpx.AsyncClient) -> None:
    answer = await calls.post(COSTS, json=[BILL, {"request_id": "s"}, {**BILL, "revision": -1}])
    assert (answer.status_code, reason(answer)) == (422, "missing_field")
    errors = answer.json()["errors"]
    assert [(error["index"], error["reason"]) for error in errors] == [
        (1, "missing_field"),
        (2, "invalid_field"),
    ]


async def test_who_asks_too_often_is_told_when_to_come_again(calls: httpx.AsyncClient) -> None:
    statuses = [(await calls.get("/v1/routers/acme.chat")).status_code for _ in range(7)]
    assert statuses[0] == 404 and statuses[-1] == 429
    answer = await calls.post(COSTS, json=[BILL] * 5)
    assert reason(answer) == "rate_limited" and int(answer.headers["retry-after"]) >= 1


async def test_silence_is_a_problem_or_the_fallback_that_was_named(
    calls: httpx.AsyncClient,
) -> None:
    answer = await calls.post(DECISIONS, json={"prompt": "x", "request_id": "r"})
    assert (answer.status_code, reason(answer), answer.json()["request_id"]) == (
        503,
        "undelivered",
        "r",
    )
    answer = await calls.post(
        f"{DECISIONS}?timeout=0.01&fallback=small", json={"prompt": "x", "request_id": "r"}
    )
    assert answer.status_code == 200
    assert answer.json() == {
        "router_id": "acme.chat",
        "request_id": "r",
        "model": "small",
        "fallback": True,
    }
    for wrong in ("timeout=0", "timeout=x", "fallback="):
        assert (
            reason(await calls.post(f"{DECISIONS}?{wrong}", json={"prompt": "x"}))
            == "invalid_field"
        )


async def test_health_says_that_kafka_is_away_and_needs_no_key(calls: httpx.AsyncClient) -> None:
    nobody: dict[str, Any] = {"headers": {"Authorization": ""}}
    assert (await calls.get("/livez", **nobody)).status_code == 200
    assert (await calls.get("/readyz", **nobody)).status_code == 503
    await calls.get("/v1/routers/other")
    shown = (await calls.get("/metrics", **nobody)).text
    assert (
        'pb_gateway_requests_total{status="403",what="router"} 1.0' in shown
        and "pb_gateway_ready 0.0" in shown
    )
    assert "acme" not in shown


async def test_the_description_is_complete(calls: httpx.AsyncClient) -> None:
    described = (await calls.get("/openapi.json", headers={"Authorization": ""})).json()
    assert described["openapi"].startswith("3.1")
    assert {path.replace("/v1/routers/{router_id}", "") for path in described["paths"]} == {
        "",
        "/decisions",
        "/decisions/{request_id}",
        "/costs",
        "/rewards",
        "/ingest/{form}",
    }
    schemas = described["components"]["schemas"]
    named = {
        part.split('"')[0] for part in json.dumps(described).split('"#/components/schemas/')[1:]
    }
    assert named <= schemas.keys()
    assert "router_id" not in schemas["Request"]["properties"] and schemas["Cost"]["required"] == [
        "request_id"
    ]
    for path in described["paths"].values():
        for operation in path.values():
            assert (
                MEDIA_TYPE in operation["responses"]["default"]["content"] and operation["security"]
            )
