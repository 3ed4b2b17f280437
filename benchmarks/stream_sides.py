"""The sides of `benchmarks.stream`: what copies events, and a worker that decides them."""

from __future__ import annotations

import asyncio
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import orjson
import psutil
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from benchmarks.streaming import (
    DRAINED_WITHIN,
    PARTITIONS,
    WARM,
    Drained,
    Events,
    declarations,
    measure,
    process,
    produce,
    requests,
    stamps,
    worker_environment,
)
from commands.broker.wire import free_ports
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings

ECHO = ["-m", "benchmarks.stream_echo", "worker", "-l", "error"]
"""The two that copy: a bare agent of the framework, and the client library alone."""
RAW = ["-m", "benchmarks.stream_raw"]
WORKER = ("-m", "commands.cli", "worker")


async def drain_copy(bootstrap: str, arguments: list[str], events: Events) -> Drained:
    """Let a program copy a backlog."""
    async with _copying(bootstrap, arguments, before=events) as (child, name):
        times = await asyncio.create_task(stamps(bootstrap, f"{name}-out", len(events)))
        return measure(child, 0.0, times)


@dataclass(frozen=True, slots=True)
class Copied:
    """aiokafka alone at a rate.

    Attributes:
        waits: milliseconds that each event took in and out again.
        cpu_us: CPU an event, µs.
    """

    waits: list[int]
    cpu_us: float


async def copy_at(bootstrap: str, *, rate: float, seconds: float) -> Copied:
    """Let events through aiokafka, nothing else being done with them; the waits of the first `WARM`
    seconds do not count.
    """
    first, events = requests(1), requests(int(rate * (WARM + seconds)), start=1)
    async with _copying(bootstrap, RAW, before=first, lingers=False) as (child, name):
        await stamps(bootstrap, f"{name}-out", 1)  # it is at work
        before = cpu_seconds(child)
        await produce(bootstrap, f"{name}-in", events, per_second=rate)
        out = await stamps(bootstrap, f"{name}-out", 1 + len(events))
        taken = cpu_seconds(child) - before
        came = await stamps(bootstrap, f"{name}-in", 1 + len(events))
    counted = range(1 + int(rate * WARM), 1 + len(events))
    waits = [out[f"r{i}"] - came[f"r{i}"] for i in counted]
    return Copied(waits, 1e6 * taken / len(events))


@asynccontextmanager
async def _copying(
    bootstrap: str, arguments: list[str], *, before: Events, lingers: bool = True
) -> AsyncIterator[tuple[psutil.Process, str]]:
    """Run a program that copies from a topic, which has some events, to another one; what comes out
    is stamped when the broker has it.
    """
    name = f"echo-{uuid.uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    stamped = {"message.timestamp.type": "LogAppendTime"}
    await admin.create_topics(
        [
            NewTopic(f"{name}-in", PARTITIONS, 1),
            NewTopic(f"{name}-out", PARTITIONS, 1, topic_configs=stamped),
        ]
    )
    await admin.close()
    await produce(bootstrap, f"{name}-in", before)
    with TemporaryDirectory() as folder:
        environment = {
            "ECHO_ID": name,
            "ECHO_IN": f"{name}-in",
            "ECHO_OUT": f"{name}-out",
            "ECHO_PARTITIONS": str(PARTITIONS),
            "ECHO_LINGER_MS": "5" if lingers else "0",
            "KAFKA_BOOTSTRAP": bootstrap,
            "FAUST_DATADIR": folder,
        }
        with process(arguments, environment) as child:
            yield child, name


class Bench:
    """One service with so many routers, and its worker, which may be restarted."""

    def __init__(self, bootstrap: str, routers: int) -> None:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self.settings: Settings = load_settings(
            bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=PARTITIONS
        )
        self.routers = routers
        self.asked = 0

    async def create(self) -> None:
        """Make the topics; decisions and bills are stamped when the broker has them."""
        await create_topics(self.settings)
        admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.bootstrap)
        await admin.start()
        stamped = {"message.timestamp.type": "LogAppendTime"}
        await admin.alter_configs(
            [
                ConfigResource(ConfigResourceType.TOPIC, self.settings.topic(name), configs=stamped)
                for name in ("routes", "costs")
            ]
        )
        await admin.close()
        await self.send("routers", declarations(self.routers))

    async def send(self, name: str, events: Events, *, per_second: float | None = None) -> None:
        """Send events to a source topic."""
        topic = self.settings.topic(name)
        await produce(self.settings.bootstrap, topic, events, per_second=per_second)

    def more(self, count: int) -> Events:
        """Return `count` new requests."""
        self.asked += count
        return requests(count, routers=self.routers, start=self.asked - count)

    @contextmanager
    def worker(
        self, program: Sequence[str] = WORKER, more: Mapping[str, str] | None = None
    ) -> Iterator[tuple[psutil.Process, float]]:
        """Run a worker; yield the process once it is ready, and the seconds that its start took."""
        (port,) = free_ports(1)
        environment = {
            **worker_environment(self.settings),
            "PB_WEB_PORT": str(port),
            **(more or {}),
        }
        began = time.monotonic()
        with process([*program], environment) as child:
            while not _answers(f"http://127.0.0.1:{port}/readyz"):
                if time.monotonic() - began > 120:
                    raise TimeoutError("the worker is not ready after 120 s")
                time.sleep(0.02)
            yield child, time.monotonic() - began

    async def decided(self) -> dict[str, int]:
        """Return when each request was answered, once all are."""
        return await stamps(self.settings.bootstrap, self.settings.topic("routes"), self.asked)

    async def in_force(self) -> None:
        """Wait until the worker has every router, so that no request waits for its own."""
        found: set[bytes] = set()
        async with self._lambda() as consumer:
            while len(found) < self.routers:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found.update(record.key for record in records)

    async def asked_at(self) -> dict[str, int]:
        """Return when each request was sent."""
        return await stamps(self.settings.bootstrap, self.settings.topic("requests"), self.asked)

    async def settled(self, count: int) -> int:
        """Return when the last of so many bills and rewards was in, in ms."""
        last: dict[bytes, tuple[int, int]] = {}
        latest = 0
        async with self._lambda() as consumer:
            while any(sum(two[i] for two in last.values()) < count for i in (0, 1)):
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        said = orjson.loads(record.value)
                        latest = max(latest, record.timestamp)
                        last[record.key] = said["settled"], said["rewards_applied"]
        return latest

    @asynccontextmanager
    async def _lambda(self) -> AsyncIterator[AIOKafkaConsumer]:
        """Read what the routers say from the start, for no longer than a drain may take."""
        async with (
            asyncio.timeout(DRAINED_WITHIN),
            AIOKafkaConsumer(
                self.settings.topic("lambda"),
                bootstrap_servers=self.settings.bootstrap,
                auto_offset_reset="earliest",
            ) as consumer,
        ):
            yield consumer


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except (urllib.error.URLError, OSError):
        return False


def cpu_seconds(child: psutil.Process) -> float:
    """Return the CPU time that a process has taken."""
    return float(sum(child.cpu_times()[:2]))


def broker_processes() -> list[psutil.Process]:
    """Return the brokers that this process has started."""
    children = psutil.Process(os.getpid()).children(recursive=True)
    return [child for child in children if child.name() == "java"]
