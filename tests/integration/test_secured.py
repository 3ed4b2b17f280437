"""A worker on a Kafka with TLS, passwords and an authorizer, and on a Redis alike: it has its
rights and not one more.
"""

from __future__ import annotations

import asyncio
import gc
import json
import struct
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import aiohttp
import psutil
import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from agents.table import keys
from commands.broker.wire import free_ports
from commands.cli import main
from streams.log.login_refusal import refusal
from streams.log.rights import Operation, Right, reading, rights
from streams.log.rights_check import missing_rights
from streams.settings import Settings
from streams.state.redis_rights import acl
from tests.integration.service import RunningService, cost, request, reward, router, running_service
from tests.secured import certificates, grant, revoke, secured_kafka, secured_redis

WORKER, OPERATOR, INGEST = "User:pb-worker", "User:pb-operator", "User:pb-ingest"
PASSWORDS = {
    "pb-worker": "planted-kafka-5e1f",
    "pb-operator": "planted-operator-77c2",
    "pb-ingest": "planted-ingest-31d8",
}
REDIS_PASSWORD = "planted-redis-90ab"
PROMPT = "planted prompt: why do quokkas smile at zebras?"
NUMBER = 0.7316428519
PREFIX = "secured."
WIDTHS = {"home": 5, "questions": 26}
WINDOW = "\x1fwindow"
MEANS = {"\x1frewards": 0, "\x1fbills": 0, "\x1fdraw": 16}
"""Pieces of a router that hold a mean context, and how many bytes follow it there."""
DONE = {"settled": 1, "rewards_applied": 1}


class Secured(NamedTuple):
    """Addresses: Kafka for users, Kafka for the test, Redis; and where certificates and passwords
    lie.
    """

    kafka: str
    plain: str
    redis: str
    folder: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = certificates(tmp_path_factory.mktemp("secured"))
    for user, password in PASSWORDS.items():
        (folder / user).write_text(password)
    rule = (
        acl(Settings(prefix=PREFIX), "pb-worker")
        .replace(">PASSWORD", f">{REDIS_PASSWORD}")
        .replace(PREFIX, "svc-*.")
    )
    blind = f"blind on >{REDIS_PASSWORD} ~* -@all +set"
    with (
        secured_kafka(folder, PASSWORDS) as (kafka, plain),
        secured_redis(folder, rules=[f"user {rule}", f"user {blind}"]) as port,
    ):
        yield Secured(kafka, plain, f"127.0.0.1:{port}", folder)


def redis_url(secured: Secured, user: str = "pb-worker") -> str:
    authority = secured.folder / "ca.pem"
    return f"rediss://{user}:{REDIS_PASSWORD}@{secured.redis}/0?ssl_ca_certs={authority}"


def access(secured: Secured, user: str) -> dict[str, Any]:
    """Return the settings with which a user reaches Kafka."""
    return {
        "PB_BOOTSTRAP": secured.kafka,
        "PB_SECURITY_PROTOCOL": "SASL_SSL",
        "PB_SASL_USERNAME": user,
        "PB_SASL_PASSWORD_FILE": str(secured.folder / user),
        "PB_SSL_CAFILE": str(secured.folder / "ca.pem"),
    }


@pytest.fixture
async def service(secured: Secured, tmp_path: Path) -> AsyncIterator[RunningService]:
    (secured.folder / "redis-url").write_text(redis_url(secured))
    environment = access(secured, "pb-worker") | {
        "PB_REDIS_URL_FILE": str(secured.folder / "redis-url")
    }
    async with running_service(
        secured.plain, tmp_path, PB_ENCODER_BACKEND="static", **environment
    ) as running:
        await grant(secured.plain, WORKER, rights(running.settings, "worker"))
        yield running


def settings_of(secured: Secured, service: RunningService, user: str) -> Settings:
    return service.settings.model_copy(
        update={
            "bootstrap": secured.kafka,
            "security_protocol": "SASL_SSL",
            "sasl_username": user,
            "sasl_password": SecretStr(PASSWORDS[user]),
            "ssl_cafile": secured.folder / "ca.pem",
        }
    )


async def command(
    secured: Secured, service: RunningService, *words: str, user: str = "pb-operator", **more: str
) -> Result:
    """Run a command as a user."""
    own = {
        "PB_PREFIX": service.settings.prefix,
        "PB_APP_ID": service.settings.app_id,
        "PB_PARTITIONS": str(service.settings.partitions),
    }
    environment = {**access(secured, user), **own, **more}
    stdin = json.dumps([0.5, 0.5, 0.5, 0.5, 1.0])
    return await asyncio.to_thread(
        lambda: CliRunner().invoke(main, list(words), env=environment, input=stdin)
    )


async def test_full_path_with_exactly_its_rights_and_nothing_secret_anywhere(
    secured: Secured, service: RunningService
) -> None:
    worker = await service.ready(service.worker(module="commands.cli worker --log-level debug"))
    await service.send("routers", router("home"))
    await service.send("routers", router("questions", dimensions=WIDTHS["questions"]))
    vector = [NUMBER, -NUMBER, 0.25, 0.125, 1.0]
    await service.send("requests", request("home", "asked-1", context=vector, prompt=PROMPT))
    await service.send(
        "requests", {"router_id": "questions", "request_id": "p-1", "prompt": PROMPT}
    )
    astray = (service.partition_of("home") + 1) % 4
    await service.send("requests", request("home", "astray", context=vector), partition=astray)
    for home, request_id in (("home", "asked-1"), ("questions", "p-1")):
        await service.send("costs", cost(home, request_id, 0.0005))
        await service.send("rewards", reward(home, request_id, 0.8))
    refused: tuple[dict[str, Any], ...] = (
        {"prompt": PROMPT, "allowed_models": ["none"]},
        {"prompt": 7, "context": vector},
        {"context": [NUMBER]},
        {"prompt": " "},
    )
    for number, wrong in enumerate(refused):
        await service.send(
            "requests", {"router_id": "home", "request_id": f"bad-{number}", **wrong}
        )
    await service.send("requests", b'{"prompt": "' + PROMPT.encode() + b'", NaN', key=b"home")
    await service.send("requests", request("nowhere", "waits", context=vector, prompt=PROMPT))
    await service.until(lambda: len(service.records["dlq"]) == 6, "refusals")
    await service.until(
        lambda: all(
            DONE.items() <= service.lambda_of(home).items() for home in ("home", "questions")
        ),
        "the path",
    )
    await service.until(
        lambda: {route["request_id"] for route in service.routes()} == {"asked-1", "p-1", "astray"},
        "decisions",
    )

    listening = [
        c.laddr
        for c in psutil.Process(worker.process.pid).net_connections("inet")
        if c.status == psutil.CONN_LISTEN
    ]
    assert [address.ip for address in listening] == ["127.0.0.1"]
    pages = await asyncio.to_thread(
        lambda: [
            _page(listening[0].port, path) for path in ("livez", "readyz", "metrics", "", "state")
        ]
    )
    assert [status for status, _ in pages] == [200, 200, 200, 404, 404]
    assert not any(
        word in body for word in (b"home", b"questions", b"asked-1", b"llama") for _, body in pages
    )

    # A refused event is forgotten with the first commit after its dead letter was delivered.
    for commit in range(20):
        await service.send("requests", request("home", f"last-{commit}", context=vector))
        await service.until(partial(service.route, f"last-{commit}"), "a decision")
        changelog = [
            r for log in (await service.log_of(service.settings.changelog)).values() for r in log
        ]
        waiting = {r.key for r in changelog if r.key[:1] == keys.PARKED}
        last = {r.key: r.value for r in changelog}
        if waiting and all(last[key] is None for key in waiting):
            break
    context_records = [
        r for r in changelog if r.key[:1] == keys.CONTEXT or WINDOW in keys.split(r.key)[2]
    ]
    assert waiting and all(last[key] is None for key in waiting)
    places = {
        "log": worker.log.read_bytes(),
        "pages": b"".join(body for _, body in pages),
        "state": b"".join(
            r.key + without_mean_context(r.key, r.value or b"")
            for r in changelog
            if r not in context_records
        ),
        "headers of dead letters": repr([r.headers for r in service.records["dlq"]]).encode(),
        **{
            name: b"".join(
                (r.value or b"") + repr(r.headers).encode() for r in service.records[name]
            )
            for name in ("lambda", "alerts", "refusals")
        },
        "decisions": b"".join(r.value for r in service.records["routes"]),
    }
    secrets = [*PASSWORDS.values(), REDIS_PASSWORD]
    texts = [text.encode() for text in (*secrets, "quokka", str(NUMBER))]
    numbers = [
        struct.pack(kind, sign * NUMBER) for kind in ("<d", "<f", ">d", ">f") for sign in (1, -1)
    ]
    found = [
        (place, planted)
        for place, content in places.items()
        for planted in (*texts, *numbers)
        if planted in content
    ]
    assert found == []
    assert struct.pack("<d", NUMBER) in b"".join(r.value or b"" for r in context_records)
    # The mean context of the traffic is that of the one request.
    assert struct.pack("<d", NUMBER) in last[keys.key(keys.ARM, "home", "\x1fdraw")]
    stored = b"".join(r.value or b"" for r in changelog)
    assert not any(secret.encode() in stored for secret in secrets)


def without_mean_context(key: bytes, value: bytes) -> bytes:
    """Return a record of the changelog without the mean context in it, which is the context itself
    as long as there is one request.
    """
    _, router_id, piece = keys.split(key)
    if piece not in MEANS or not value:
        return value
    end = len(value) - MEANS[piece]
    return value[: end - 8 * WIDTHS[router_id]] + value[end:]


def _page(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except OSError as error:
        return getattr(error, "code", 0), b""


async def test_each_right_that_is_taken_away_is_named(
    secured: Secured, service: RunningService
) -> None:
    settings = settings_of(secured, service, "pb-worker")
    assert await missing_rights(settings, "worker") == []
    listed = rights(settings, "worker")
    for kind in {(right.resource, right.operation) for right in listed}:
        taken_away = [right for right in listed if (right.resource, right.operation) == kind]
        await revoke(secured.plain, WORKER, taken_away)
        assert await missing_rights(settings, "worker") == taken_away
        await grant(secured.plain, WORKER, taken_away)
    taken = Right("topic", settings.topic("requests"), Operation.READ)
    await revoke(secured.plain, WORKER, [taken])
    worker = service.worker()
    await service.until(lambda: not worker.running, "its end", poll=False)
    assert (
        f"user pb-worker has no right to Read on topic {settings.topic('requests')}: `kafka-acls.sh"
        in worker.tail()
    )
    await grant(secured.plain, WORKER, [taken])
    blind = service.worker(PB_REDIS_URL=redis_url(secured, "blind"))
    await service.until(lambda: not blind.running, "its end", poll=False)
    assert "'mget' command; user blind needs: `ACL SETUSER blind on >PASSWORD" in blind.tail()
    assert REDIS_PASSWORD not in blind.tail()


@pytest.mark.parametrize("password", [PASSWORDS["pb-worker"], "wrong"])
def test_asking_why_kafka_cannot_be_reached_leaves_no_connection_open(
    secured: Secured, password: str
) -> None:
    settings = Settings(
        bootstrap=secured.kafka,
        security_protocol="SASL_SSL",
        sasl_username="pb-worker",
        sasl_password=SecretStr(password),
        ssl_cafile=secured.folder / "ca.pem",
    )
    # A loop of its own each time, as a command has; what it leaves open warns as it is collected.
    for _ in range(10):
        assert (asyncio.run(refusal(settings)) is None) is (password != "wrong")
    gc.collect()


async def test_commands_work_with_an_operators_rights_and_name_the_one_that_is_missing(
    secured: Secured, service: RunningService, tmp_path: Path
) -> None:
    operators = rights(service.settings, "operator")
    nobody = await command(secured, service, "routers", "list")
    assert nobody.exit_code == 1
    assert (
        f"user pb-operator has no right to Read on topic {service.settings.topic('routers')}"
        in nobody.output
    )
    await grant(secured.plain, OPERATOR, operators)
    await service.ready(service.worker())
    add = (
        "models",
        "add",
        "small",
        "--input-price",
        "0.1",
        "--output-price",
        "0.4",
        "--dimensions",
        "5",
    )
    for words in (
        add,
        ("request", "--context", "-", "--id", "q-1"),
        ("reward", "q-1", "0.9", "--source", "judge"),
        ("topics", "check"),
        ("topics", "acls", "--role", "operator", "--check"),
        ("snapshot", "export", str(tmp_path / "default.pbs")),
        ("audit",),
    ):
        done = await command(secured, service, *words)
        assert done.exit_code == 0, (words, done.output)
    taken = Right("topic", service.settings.topic("routers"), Operation.WRITE)
    await revoke(secured.plain, OPERATOR, [taken])
    refused = await command(secured, service, "budget", "set", "0.002")
    assert refused.exit_code == 1
    assert f"user pb-operator has no right to {taken}: `kafka-acls.sh" in refused.output
    wrong = await command(
        secured, service, "routers", "list", PB_SASL_PASSWORD_FILE=str(secured.folder / "pb-worker")
    )
    assert wrong.exit_code == 1
    assert "refuses user pb-operator: look at PB_SASL_USERNAME and PB_SASL_PASSWORD" in wrong.output
    untrusted = await command(
        secured, service, "routers", "list", PB_SSL_CAFILE=str(secured.folder / "server.crt")
    )
    assert untrusted.exit_code == 1
    assert "PB_SSL_CAFILE" in untrusted.output
    told = nobody.output + refused.output + wrong.output + untrusted.output
    assert not any(password in told for password in PASSWORDS.values())


async def test_ingest_and_gateways_work_with_their_roles_rights_and_not_without(
    secured: Secured, service: RunningService
) -> None:
    payloads, group = service.settings.topic("alerts"), f"{service.settings.app_id}-ingest"
    listed = [*rights(service.settings, "ingest"), *reading(payloads, group=group)]
    await grant(secured.plain, INGEST, listed)
    await service.ready(service.worker())
    await service.send("routers", router("home"))
    (port,) = free_ports(1)
    user = access(secured, "pb-ingest")
    service.worker(module="commands.cli gateway", PB_GATEWAY_PORT=str(port), **user)
    await service.until(lambda: _page(port, "readyz")[0] == 200, "a gateway", poll=False)
    home = f"http://127.0.0.1:{port}/v1/routers/home"
    async with aiohttp.ClientSession() as web:
        for what, event, status in (
            ("decisions", {"request_id": "a", "context": [0.5, 0.5, 0.5, 0.5, 1.0]}, 200),
            ("costs", {"request_id": "a", "cost_usd": 0.001}, 202),
            ("ingest/langfuse", {"value": "high", "traceId": "a"}, 422),
        ):
            async with web.post(f"{home}/{what}", json=event) as answer:
                assert answer.status == status, await answer.text()
    ingesting = service.worker(
        module=f"commands.cli ingest {payloads} --from langfuse --router home --group {group}",
        **user,
    )
    for score in ({"value": 0.9, "traceId": "a", "name": "x"}, {"value": "high"}):
        await service.send("alerts", json.dumps(score).encode(), key=b"k")
    await service.until(
        lambda: (
            service.lambda_of("home").get("settled") == 1
            and service.lambda_of("home").get("rewards_applied") == 1
            and len(service.dead_letters()) == 2
        ),
        "bill, reward and both dead letters",
    )
    # Without any one of them it does not work: of what it reads and writes, the topics …
    ingesting.terminate()
    await service.until(lambda: not ingesting.running, "its end", poll=False)
    assert "2 records read, 1 events written, 1 records refused" in ingesting.tail()
    settings = settings_of(secured, service, "pb-ingest")
    assert await missing_rights(settings, "ingest") == []
    for right in rights(settings, "ingest"):
        await revoke(secured.plain, INGEST, [right])
        assert await missing_rights(settings, "ingest") == [right]
        await grant(secured.plain, INGEST, [right])
    # … and the group.
    await revoke(secured.plain, INGEST, reading(payloads, group=group))
    refused = service.worker(
        module=f"commands.cli ingest {payloads} --from langfuse --router home --group {group}",
        **user,
    )
    await service.until(lambda: not refused.running, "its end", poll=False)
    assert refused.process.returncode == 1
    assert "this user may not read it" in refused.tail() and payloads in refused.tail()
