"""Real brokers: one that takes and gives records, three of which one may fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from commands.broker.choose import LocalKafka, choose_broker
from commands.broker.jars import KafkaUnavailable, installation
from commands.broker.node import Node
from commands.broker.wire import answers


async def create_topic(bootstrap: str, *, replication: int = 1) -> str:
    """Create a topic of one partition with a name of its own."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        topic = f"broker-{uuid4().hex}"
        settings = {"min.insync.replicas": str(min(replication, 2))}
        await admin.create_topics([NewTopic(topic, 1, replication, topic_configs=settings)])
        return topic
    finally:
        await admin.close()


async def write(bootstrap: str, topic: str, value: bytes) -> None:
    """Write one record to all replicas in sync."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
        await producer.send_and_wait(topic, value)


async def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Read the first `count` records with a consumer group."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"g-{uuid4().hex}",
        auto_offset_reset="earliest",
    )
    async with consumer:
        return [(await consumer.getone()).value for _ in range(count)]


async def test_a_group_reads_what_was_written(kafka: str) -> None:
    topic = await create_topic(kafka)
    await write(kafka, topic, b"one")
    await write(kafka, topic, b"two")
    assert await read(kafka, topic, 2) == [b"one", b"two"]


def test_one_of_three_that_ends_is_said_and_the_second_is_one_too_many() -> None:
    said: list[str] = []
    with LocalKafka(brokers=3, say=said.append) as three:
        three.kill(2)
        assert not answers(three.nodes[2].address)
        three.kill(3)
        with pytest.raises(KafkaUnavailable, match=f"{three.nodes[3].address} has ended"):
            three.watch()
    assert said[-1].startswith(f"Kafka node 2 on {three.nodes[2].address} has ended")


async def test_kept_data_outlives_the_broker(tmp_path: Path) -> None:
    with LocalKafka(data_dir=tmp_path) as first:
        topic = await create_topic(first.bootstrap)
        await write(first.bootstrap, topic, b"kept")
    with LocalKafka(data_dir=tmp_path) as second:
        assert await read(second.bootstrap, topic, 1) == [b"kept"]


def test_a_folder_is_formatted_as_kafkas_tool_does_it_without_the_tool(tmp_path: Path) -> None:
    installed = replace(installation(), archive=tmp_path / "none.jsa")
    first, second = (Node(n, 9092, 9093, tmp_path / str(n), installed, heap_mb=64) for n in (1, 2))
    first.format([first], cluster_id="one")
    second.installed = replace(installed, java="/bin/false")
    second.format([second], cluster_id="two")
    folders = [node.folder / "data" for node in (first, second)]
    assert len({frozenset(file.name for file in folder.iterdir()) for folder in folders}) == 1
    assert len({(folder / "bootstrap.checkpoint").read_bytes() for folder in folders}) == 1
    one, two = (
        dict(line.split("=") for line in file.read_text().splitlines() if "=" in line)
        for file in (folder / "meta.properties" for folder in folders)
    )
    assert one.keys() == two.keys() and one["version"] == two["version"]
    assert (two["node.id"], two["cluster.id"]) == ("2", "two")
    assert one["directory.id"] != two["directory.id"]


def test_a_named_broker_is_used_as_it_is(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PB_BROKER", raising=False)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", kafka)
    with choose_broker() as broker:
        assert (broker.bootstrap, broker.kind) == (kafka, "env")


def test_the_broker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = "from commands.broker.choose import LocalKafka\nimport time\n"
    script += (
        "with LocalKafka() as k: print(k.nodes[1].jvm.pid, k.bootstrap, flush=True); "
        "time.sleep(300)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid, bootstrap = parent.stdout.readline().split()
        assert answers(bootstrap)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while _alive(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(int(pid))


def _alive(pid: int) -> bool:
    """Tell whether the process runs; one that has ended but was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
