"""A broker that knows its users and grants them nothing by itself, with certificates made for it,
and a Redis alike.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest_v1, DeleteAclsRequest_v1

from commands.broker.child import spawn
from commands.broker.local import LocalKafka
from commands.broker.wire import free_ports
from streams.log.rights import Right

RESOURCES = {"topic": 2, "group": 3}
LITERAL, ALLOW = 3, 3


def certificates(folder: Path) -> Path:
    """Make an authority (`ca.pem`) and a server's certificate for 127.0.0.1 (`server.crt`,
    `server.key`, both in `server.pem`).
    """

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    name = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    ca = [
        "-addext",
        "basicConstraints=critical,CA:TRUE",
        "-addext",
        "keyUsage=critical,keyCertSign",
    ]
    openssl(
        "req",
        "-x509",
        *name,
        "-days",
        "2",
        "-subj",
        "/CN=test authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
        *ca,
    )
    openssl("req", *name, "-subj", "/CN=127.0.0.1", "-keyout", "server.key", "-out", "server.csr")
    (folder / "san.cnf").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    signed = [
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "san.cnf",
        "-out",
        "server.crt",
    ]
    openssl("x509", "-req", "-in", "server.csr", *signed)
    (folder / "server.pem").write_text(
        (folder / "server.key").read_text() + (folder / "server.crt").read_text()
    )
    return folder


@contextmanager
def secured_kafka(folder: Path, users: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the address for users (SASL_SSL, SCRAM-SHA-512) and the one on which the test is
    allowed everything.
    """
    (port,) = free_ports(1)
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    properties = {
        "listeners": "CLIENT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller_port},"
        f"USERS://127.0.0.1:{port}",
        "advertised.listeners": f"CLIENT://127.0.0.1:${{port}},USERS://127.0.0.1:{port}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.users.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.users.ssl.keystore.type": "PEM",
        "listener.name.users.ssl.keystore.location": str(folder / "server.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with LocalKafka(properties=properties, scram_users=users) as kafka:
        yield f"127.0.0.1:{port}", kafka.bootstrap


class _AsItIs:
    def __init__(self, struct: Any) -> None:
        self._struct = struct

    def prepare(self, versions: Any) -> Any:
        return self._struct


async def _send(bootstrap: str, struct: Any) -> Any:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        return await admin._send_request(_AsItIs(struct))
    finally:
        await admin.close()


def _rows(principal: str, rights: Iterable[Right]) -> list[tuple[object, ...]]:
    """Return rights as the broker's protocol has them."""
    fixed = (LITERAL, principal, "*")
    return [
        (RESOURCES[right.resource], right.name, *fixed, int(right.operation), ALLOW)
        for right in rights
    ]


async def grant(bootstrap: str, principal: str, rights: Iterable[Right]) -> None:
    """Grant rights, as `kafka-acls --add` does."""
    answer = await _send(bootstrap, CreateAclsRequest_v1(_rows(principal, rights)))
    assert all(code == 0 for code, _ in answer.creation_responses), answer


async def revoke(bootstrap: str, principal: str, rights: Iterable[Right]) -> None:
    """Take rights away, as `kafka-acls --remove` does."""
    answer = await _send(bootstrap, DeleteAclsRequest_v1(_rows(principal, rights)))
    assert all(len(matching) == 1 for _, _, matching in answer.filter_responses), answer


@contextmanager
def secured_redis(folder: Path, *, rules: Iterable[str]) -> Iterator[int]:
    """Yield the port of a Redis that speaks TLS only and has no users but those of `rules`."""
    (port,) = free_ports(1)
    users = folder / "users.acl"
    users.write_text("\n".join(["user default off", *rules]) + "\n")
    tls = [
        "--tls-cert-file",
        "server.crt",
        "--tls-key-file",
        "server.key",
        "--tls-ca-cert-file",
        "ca.pem",
        "--tls-auth-clients",
        "no",
    ]
    options = [
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--tls-port",
        str(port),
        *tls,
        "--aclfile",
        str(users),
        "--save",
        "",
    ]
    server = spawn(
        ["redis-server", *options, "--dir", str(folder)], log=folder / "redis.log", cwd=folder
    )
    try:
        deadline = time.monotonic() + 10.0
        while True:
            try:
                with redis.Redis(
                    host="127.0.0.1", port=port, ssl=True, ssl_ca_certs=str(folder / "ca.pem")
                ) as client:
                    client.ping()
            except redis.AuthenticationError:
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline, (folder / "redis.log").read_text()
                time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()
