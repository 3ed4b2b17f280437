"""Tools to reach a broker: cluster ids, free ports, and a Metadata request on a plain socket."""

from __future__ import annotations

import base64
import random
import socket
import struct
import uuid

HOST = "127.0.0.1"
"""Loopback address: nothing outside this machine reaches the broker."""
# Below Linux's outgoing range (32768 and up): a stopped broker's port is not taken by some client's
# connection.
PORTS = range(20000, 32000)
_METADATA_V1_NO_TOPICS = struct.pack(">hhih2si", 3, 1, 1, 2, b"pb", 0)
"""A Metadata request (API key 3, version 1) of client `pb` about no topics: the shortest question
that a broker answers once it serves."""


def new_cluster_id() -> str:
    """Make a cluster id: 16 random bytes in URL-safe base64, never with a leading dash, which would
    read as an option.
    """
    random_bytes = uuid.uuid4().bytes
    return (
        base64.urlsafe_b64encode(bytes([random_bytes[0] & 0x3F]) + random_bytes[1:])
        .decode()
        .rstrip("=")
    )


def live_brokers(address: str, *, timeout: float = 2.0) -> set[int]:
    """Return the node ids that the broker at `address` ("host:port") lists; empty if it does not
    answer.
    """
    host, _, port = address.strip().rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=timeout) as connection:
            connection.sendall(
                struct.pack(">i", len(_METADATA_V1_NO_TOPICS)) + _METADATA_V1_NO_TOPICS
            )
            (size,) = struct.unpack(">i", _read(connection, 4))
            return _node_ids(_read(connection, size))
    except (OSError, ValueError, struct.error):
        return set()


def answers(bootstrap: str, *, timeout: float = 3.0) -> bool:
    """Tell whether any address of the comma-separated `bootstrap` is a Kafka broker that
    answers.
    """
    return any(live_brokers(address, timeout=timeout) for address in bootstrap.split(","))


def is_free(port: int) -> bool:
    """Tell whether nothing listens on a loopback port now."""
    with socket.socket() as probe:
        # As a server does it: a connection that was closed a moment ago holds no port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """Pick `count` different loopback ports that nothing listens on now."""
    chosen: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise OSError(f"no {count} free ports between {PORTS.start} and {PORTS.stop}")


def _read(connection: socket.socket, size: int) -> bytes:
    # Another server may answer anything: read as a length, four bytes of HTTP are 1.2 GB.
    if not 0 <= size <= 1 << 20:
        raise ValueError("not a Kafka broker's answer")
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise OSError("connection closed")
        data += part
    return data


def _node_ids(answer: bytes) -> set[int]:
    """Read the brokers of a Metadata v1 response: id, host, port, nullable rack each."""
    correlation, count = struct.unpack_from(">ii", answer)
    if correlation != 1:
        raise ValueError("not a Kafka broker's answer")
    at, ids = 8, set()
    for _ in range(count):
        node_id, host_size = struct.unpack_from(">ih", answer, at)
        at += 6 + host_size + 4
        (rack_size,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_size, 0)
        ids.add(node_id)
    return ids
