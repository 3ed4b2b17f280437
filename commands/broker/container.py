"""Kafka's official image in a container, for machines with Docker."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from commands.broker.jars import KAFKA_VERSION, KafkaUnavailable, Say, say_on_stderr
from commands.broker.wire import HOST, answers, free_ports, new_cluster_id

IMAGE = f"apache/kafka:{KAFKA_VERSION}"
"""The Apache project's image, of the same version as the jars."""
START_SECONDS = 90.0
"""Seconds that a container has until its broker answers."""


@contextmanager
def docker_kafka(*, say: Say = say_on_stderr) -> Iterator[str]:
    """Run one broker in a container and yield its bootstrap address; the container is removed at
    the end.

    Raises:
        KafkaUnavailable: no daemon answers, the image is not here and cannot be pulled, or it does
        not start.
    """
    try:
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.container import DockerContainer

        import docker
    except ImportError as missing:
        raise KafkaUnavailable(
            f"the Python package {missing.name} is missing; it is in the extra 'demo'"
        ) from missing
    if not _listening(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")):
        raise KafkaUnavailable("no Docker daemon listens")
    try:
        with closing(docker.from_env(timeout=5)) as client:
            client.ping()
            if not _have(client, IMAGE, say):
                raise KafkaUnavailable(f"the image {IMAGE} is not here, and cannot be pulled")
            if not _have(client, testcontainers_config.ryuk_image, say):
                testcontainers_config.ryuk_disabled = (
                    True  # its reaper is optional: the container is removed below
                )
    except docker.errors.DockerException as error:
        raise KafkaUnavailable(f"no Docker daemon answers ({_short(error)})") from error
    box = DockerContainer(IMAGE).with_kwargs(hostname="kafka")
    hosts = list(dict.fromkeys([HOST, box.get_docker_client().host()]))
    addresses = [f"{host}:{port}" for host, port in zip(hosts, free_ports(len(hosts)), strict=True)]
    # A broker tells clients the address to use; one that they can't reach is useless.
    for at, address in enumerate(addresses):
        box.with_bind_ports(9092 + at, int(address.rpartition(":")[2]))
    box.with_envs(**_environment(addresses))
    try:
        box.start()
        yield _wait(addresses)
    except docker.errors.DockerException as error:
        raise KafkaUnavailable(f"{IMAGE} does not start: {_short(error)}") from error
    finally:
        box.stop()


def _listening(host: str) -> bool:
    """Tell whether the daemon's socket takes connections; any other address is left to the Docker
    client.
    """
    scheme, _, path = host.partition("://")
    if scheme != "unix":
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def _environment(addresses: list[str]) -> dict[str, str]:
    """Return the broker's settings: a listener for every address under which this machine may reach
    the container.

    Whether published ports are on loopback or on a gateway depends on where the daemon runs; both
    are tried.
    """
    names = [f"HOST{at}" for at in range(len(addresses))]
    listeners = [f"{name}://:{9092 + at}" for at, name in enumerate(names)]
    return {
        "CLUSTER_ID": new_cluster_id(),
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:19093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": ",".join([*listeners, "INSIDE://:19092", "CONTROLLER://:19093"]),
        "KAFKA_ADVERTISED_LISTENERS": ",".join(
            [f"{name}://{address}" for name, address in zip(names, addresses, strict=True)]
            + ["INSIDE://kafka:19092"]
        ),
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": ",".join(
            f"{name}:PLAINTEXT" for name in [*names, "INSIDE", "CONTROLLER"]
        ),
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "4",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
        "KAFKA_LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS": str(2**63 - 1),
    }


def _wait(addresses: list[str]) -> str:
    """Return the first address at which the broker answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for address in addresses:
            if answers(address, timeout=1.0):
                return address
        time.sleep(0.2)
    raise KafkaUnavailable(f"{IMAGE} runs, but does not answer at {' or '.join(addresses)}")


def _have(client: Any, image: str, say: Say) -> bool:
    """Tell whether the daemon has `image`, pulling it if a registry can be reached."""
    import docker

    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        say(f"Pulling {image} ...")
        try:
            with closing(docker.from_env(timeout=300)) as patient:
                patient.images.pull(image)
        except (docker.errors.DockerException, OSError):
            return False
    return True


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
