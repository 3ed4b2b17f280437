"""The choice of a broker and its small parts, where no broker is needed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from commands.broker.choose import KafkaUnavailable, choose_broker
from commands.broker.jars import find_java, installation
from commands.broker.wire import answers, free_ports, live_brokers, new_cluster_id


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_BOOTSTRAP", "PB_BOOTSTRAP", "PB_BROKER", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def stranger() -> Iterator[str]:
    """A server that takes one connection and answers with HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("name", ["KAFKA_BOOTSTRAP", "PB_BOOTSTRAP"])
def test_a_named_broker_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv(name, f"127.0.0.1:{port}")
    with pytest.raises(KafkaUnavailable, match=f"{name} is 127.0.0.1:{port}"), choose_broker():
        pass


def test_a_server_that_is_no_kafka_does_not_count_as_an_answer(stranger: str) -> None:
    assert not answers(stranger)


@pytest.mark.parametrize("address", ["", "nonsense", "127.0.0.1:port", "127.0.0.1:70000"])
def test_a_malformed_address_does_not_answer(address: str) -> None:
    assert not answers(address)


def test_the_brokers_of_a_metadata_answer_are_read_by_any_of_the_addresses() -> None:
    brokers = b"".join(struct.pack(">ih4sih", n, 4, b"host", 9092, -1) for n in (1, 7))
    body = struct.pack(">ii", 1, 2) + brokers + struct.pack(">ii", 1, 0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(struct.pack(">i", len(body)) + body)

        Thread(target=serve, daemon=True).start()
        assert live_brokers(f"127.0.0.1:{server.getsockname()[1]}") == {1, 7}


def test_without_any_way_the_error_names_all_three(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(KafkaUnavailable) as caught, choose_broker(say=lambda text: None):
        pass
    for way in ("KAFKA_BOOTSTRAP", "start Docker", "apt-get install openjdk-17-jre-headless maven"):
        assert way in str(caught.value)


def test_missing_maven_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _fake_java(tmp_path, version="17.0.9")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(
        "commands.broker.jars.shutil.which",
        lambda name, **_: None if name == "mvn" else f"{tmp_path}/java",
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(KafkaUnavailable, match="apt-get install maven"):
        installation()


def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _fake_java(tmp_path / "bin", version="11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(KafkaUnavailable, match="older than Java 17"):
        find_java()


def test_an_unknown_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_BROKER", "cloud")
    with pytest.raises(KafkaUnavailable, match="env, docker, local"), choose_broker():
        pass


def test_no_cluster_id_looks_like_an_option() -> None:
    ids = {new_cluster_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(name) == 22 and not name.startswith("-") for name in ids)


def test_free_ports_are_distinct_and_below_the_outgoing_range() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(20000 <= port < 32000 for port in ports)


def _fake_java(folder: Path, *, version: str) -> None:
    folder.mkdir(exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
