"""What a gateway refuses before any event leaves it, and how it says so."""

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from commands.broker.wire import free_ports
from doors.gateway.api_keys import Keys, new_key
from doors.gateway.app import build_gateway
from doors.gateway.problems import MEDIA_TYPE, OWN
from schemas import Reason
from streams.settings import Settings
from tests.malformed import Malformed, malformed

KEY, LINE = new_key("acme", routers="acme.*")
AUTHORIZED = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
DECISIONS, COSTS, REWARDS = (
    f"/v1/routers/acme.chat/{what}" for what in ("decisions", "costs", "rewards")
)
BILL = {"request_id": "r", "cost_usd": 0.1}


def client_of(keys: Keys | None, **options: Any) -> httpx.AsyncClient:
    """Return a client of a gateway without Kafka: whatever gets through the door waits in vain."""
    (port,) = free_ports(1)
    settings = Settings(bootstrap=f"127.0.0.1:{port}", gateway_timeout=0.05, **options)
    transport = httpx.ASGITransport(build_gateway(settings, keys), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://gateway", headers=AUTHORIZED)


@pytest.fixture
async def calls() -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a gateway with a key."""
    # The bucket holds as many as a batch, and gets no more while a test runs.
    limits = {"gateway_rate": 0.01, "gateway_batch": 5, "gateway_body_bytes": 4096}
    async with client_of(Keys.parse(LINE), **limits) as client:
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
    monkeypatch.setattr("doors.gateway.payload_letters.SECONDS", 0.2)
    answer = await calls.post("/v1/routers/acme.chat/ingest/langfuse", json={"value": "good"})
    assert (answer.status_code, reason(answer)) == (503, "undelivered")


@pytest.mark.parametrize(
    ("path", "body", "status", "why"),
    [
        (DECISIONS, b"{", 400, "malformed_json"),
        (DECISIONS, b"\xff\xfe", 400, "malformed_json"),
        (DECISIONS, b"[" * 4000, 400, "malformed_json"),
        (COSTS, b'{"request_id": "r", "cost_usd": NaN}', 400, "malformed_json"),
        (COSTS, b'{"request_id": "r", "cost_usd": 1e999}', 422, "non_finite"),
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


@pytest.mark.parametrize(
    "record",
    [
        record
        for record in malformed("acme.chat")
        # The path names the topic and the router, there is no key, and a request is given an id.
        if record.topic != "routers" and record.value is not None and "router_id" not in record.name
        if record.reason is not Reason.WRONG_KEY
        and record.name not in ("empty_object", "request_id_absent")
    ],
    ids=lambda record: record.name,
)
async def test_what_kafka_would_dead_letter_the_gateway_refuses_with_the_same_reason(
    record: Malformed,
) -> None:
    path = f"/v1/routers/acme.chat/{'decisions' if record.topic == 'requests' else record.topic}"
    async with client_of(Keys.parse(LINE), gateway_body_bytes=2**24) as calls:
        answer = await calls.post(path, content=record.value)
    if reason(answer) != record.reason:
        assert record.reason is Reason.NON_FINITE and answer.json()["reason"] == "malformed_json"
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize("form", ["otel", "litellm", "langfuse", "cloudevents"])
@pytest.mark.parametrize(
    "value",
    [
        b'{"x":' * 300 + b"1" + b"}" * 300,
        b"[" * 1000 + b"]" * 1000,
        b"[" * 4000,
        b"9" * 400,
        b"18446744073709551616",
        b'"\\ud800"',
        b'"\xff"',
        b"NaN",
    ],
    ids=["300 deep", "1000 deep", "open", "huge", "65 bits", "surrogate", "no utf-8", "nan"],
)
async def test_no_payload_of_another_form_is_a_defect_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch, form: str, value: bytes
) -> None:
    async def kept(*_: object, **__: object) -> None: ...

    monkeypatch.setattr("doors.gateway.payload_letters.Letters.keep", kept)
    fields = (
        "specversion data type metadata traceId value resourceSpans choices usage response_cost"
    )
    body = b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name in fields.split()) + b"}"
    async with client_of(Keys.parse(LINE)) as calls:
        for spoiled in (body, b"[" + body + b"]", value):
            answer = await calls.post(f"/v1/routers/acme.chat/ingest/{form}", content=spoiled)
            assert answer.status_code < 500


@pytest.mark.parametrize("form", ["{}", "[{}]", "[{}, {}]", "{}\n\n{}\n"])
async def test_half_a_character_is_refused_in_names_alone(
    calls: httpx.AsyncClient, form: str
) -> None:
    kind = "application/x-ndjson" if "\n" in form else "application/json"
    for event, why in (
        ('{"prompt": "cut \\ud83d", "request_id": "1"}', "undelivered"),
        ('{"prompt": "cut", "request_id": "\\ud83d"}', "invalid_field"),
        ('{"prompt": "cut \\ud83d"', "malformed_json"),
    ):
        body = form.replace("{}", event)
        answer = await calls.post(DECISIONS, content=body, headers={"Content-Type": kind})
        told = answer.json()
        assert (told[0] if isinstance(told, list) else told)["reason"] == why


async def test_integers_of_a_request_are_not_rounded_at_the_door(calls: httpx.AsyncClient) -> None:
    for number, why in ((2**64, "invalid_field"), (2**53 + 1, "undelivered")):
        body = f'{{"prompt": "x", "metadata": {{"n": {number}}}}}'
        assert reason(await calls.post(DECISIONS, content=body)) == why


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
@pytest.mark.parametrize("path", [DECISIONS, COSTS, REWARDS, "/v1/routers/acme.chat/ingest/otel"])
async def test_a_body_that_is_not_said_to_be_json_is_refused(
    calls: httpx.AsyncClient, path: str, kind: str
) -> None:
    answer = await calls.post(path, content=json.dumps(BILL), headers={"Content-Type": kind})
    assert (answer.status_code, reason(answer)) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind",
    [
        "application/json; charset=utf-8",
        "application/cloudevents+json",
        "application/cloudevents-batch+json",
        "Application/JSON",
        "application/x-ndjson",
    ],
)
async def test_every_type_of_json_is_read(calls: httpx.AsyncClient, kind: str) -> None:
    answer = await calls.post(COSTS, content="{}", headers={"Content-Type": kind})
    assert reason(answer) == "missing_field"


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/jsonl"])
async def test_lines_are_a_batch(calls: httpx.AsyncClient, kind: str) -> None:
    lines = "\n".join(map(json.dumps, (BILL, {**BILL, "revision": -1}, BILL)))
    answer = await calls.post(COSTS, content=f"{lines}\n", headers={"Content-Type": kind})
    assert [(one["index"], one["reason"]) for one in answer.json()["errors"]] == [
        (1, "invalid_field")
    ]


async def test_a_compressed_body_is_refused_as_such(calls: httpx.AsyncClient) -> None:
    answer = await calls.post(
        COSTS,
        content=gzip.compress(json.dumps(BILL).encode()),
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    )
    assert (answer.status_code, reason(answer)) == (415, "unsupported_media_type")
    assert "Content-Encoding" in answer.json()["detail"]


FOREIGN = "/v1/routers/acme.chat/ingest/otel"


async def packed(calls: httpx.AsyncClient, content: bytes, encoding: str = "gzip") -> str:
    """Return why a packed payload of another system is refused."""
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    return reason(await calls.post(FOREIGN, content=content, headers=headers))


async def test_a_packed_payload_is_bounded_by_what_it_holds(
    calls: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kept(*_: object, **__: object) -> None: ...

    monkeypatch.setattr("doors.gateway.payload_letters.Letters.keep", kept)
    empty = gzip.compress(b"{}")
    assert await packed(calls, empty) == "missing_field"  # it was read, and is not OTLP
    assert await packed(calls, gzip.compress(bytes(10**6))) == "body_too_large"
    assert await packed(calls, gzip.compress(b"") * 100) == "body_too_large"
    assert await packed(calls, empty[:-4]) == "malformed_json"
    assert await packed(calls, b"{}") == "malformed_json"


async def test_another_packing_and_protobuf_are_refused_with_what_to_set() -> None:
    async with client_of(Keys.parse(LINE)) as calls:
        assert await packed(calls, b"x", "zstd") == "unsupported_media_type"
        headers = {"Content-Type": "application/x-protobuf"}
        answer = await calls.post(FOREIGN, content=b"x", headers=headers)
    assert (answer.status_code, "encoding: json" in answer.json()["detail"]) == (415, True)


async def test_items_of_a_router_that_the_key_does_not_cover_are_refused(
    calls: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kept(*_: object, **__: object) -> None: ...

    monkeypatch.setattr("doors.gateway.payload_letters.Letters.keep", kept)
    elsewhere = {"traceId": "r", "value": 1, "metadata": {"pb_router_id": "other"}}
    answer = await calls.post("/v1/routers/acme.chat/ingest/langfuse", json=elsewhere)
    assert (answer.status_code, reason(answer)) == (403, "forbidden")


async def test_a_probe_needs_no_body(calls: httpx.AsyncClient) -> None:
    for path in ("/livez", "/readyz"):
        asked, probed = await calls.get(path), await calls.head(path)
        assert (probed.status_code, probed.text) == (asked.status_code, "")


LOCAL = "127.0.0.1:8090"


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({"Host": LOCAL}, True),
        ({"Host": "localhost"}, True),
        ({"Host": "[::1]:8090"}, True),
        ({"Host": LOCAL, "Origin": f"http://{LOCAL}"}, True),
        ({"Host": LOCAL, "Sec-Fetch-Site": "same-origin", "Origin": "https://router"}, True),
        ({"Host": "rebound.example"}, False),
        ({"Host": "rebound.example:8090", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Host": "127.0.0.1.example"}, False),
        ({"Host": "10.0.0.7:8090"}, False),
        ({"Host": LOCAL, "Origin": "http://evil.example"}, False),
        ({"Host": LOCAL, "Origin": "http://127.0.0.1:3000"}, False),
        ({"Host": LOCAL, "Origin": "null"}, False),
        ({"Host": LOCAL, "Sec-Fetch-Site": "cross-site"}, False),
        ({"Host": LOCAL, "Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"}, False),
    ],
)
async def test_without_keys_only_programs_of_this_machine_and_pages_of_its_own_may_ask(
    headers: dict[str, str], passes: bool
) -> None:
    async with client_of(None) as calls:
        for method, path in (
            ("POST", DECISIONS),
            ("POST", COSTS),
            ("POST", "/v1/routers/acme.chat/ingest/litellm"),
            ("GET", "/v1/routers/acme.chat"),
            ("GET", f"{DECISIONS}/r"),
        ):
            answer = await calls.request(method, path, content="7", headers=headers)
            assert (answer.status_code == 403) is not passes, answer.text
            if not passes:
                assert reason(answer) == "forbidden"
                assert "PB_GATEWAY_KEYS_FILE" in answer.json()["detail"]


async def test_with_keys_a_gateway_answers_under_any_name(calls: httpx.AsyncClient) -> None:
    answer = await calls.get("/v1/routers/acme.chat", headers={"Host": "router.example"})
    assert reason(answer) == "unknown_router"


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
    for wrong, said in {
        "timeout=0": "timeout must be above 0",
        "timeout=x": "timeout is a text; it must be a number",
        "fallback=": "fallback must have at least 1 character",
    }.items():
        answer = await calls.post(f"{DECISIONS}?{wrong}", json={"prompt": "x"})
        assert (reason(answer), answer.json()["detail"]) == ("invalid_field", said)


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
