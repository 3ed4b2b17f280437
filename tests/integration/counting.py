"""Drive counting workers on a real broker: produce, kill, read back what the topics hold."""

import asyncio
import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import OffsetAndMetadata

from streams.log.service_topics import create_topics
from streams.settings import Settings
from tests.integration.counting_worker import NUMBER, WATERMARK
from tests.integration.counting_worker import number_of as number
from tests.integration.forked import inherited, start

PATIENCE = 90.0
LONG_ENOUGH = 5.0


class Worker:
    """One worker process and its log."""

    def __init__(
        self, settings: Settings, log: Path, options: dict[str, Any], instance: str | None
    ) -> None:
        environment = inherited() | {
            "PB_BOOTSTRAP": settings.bootstrap,
            "PB_PREFIX": settings.prefix,
            "PB_APP_ID": settings.app_id,
        }
        environment |= {"PB_PARTITIONS": str(settings.partitions), "PB_WEB_PORT": "0"}
        environment |= {"PB_INSTANCE_ID": instance} if instance else {}
        environment |= options.pop("env", {})
        command = ["tests.integration.counting_worker", json.dumps(options)]
        self.log = log
        self.process = start(command, log=log, env=environment)

    async def says(self, text: str, times: int = 1) -> None:
        """Wait until the log holds a text; fail with the log if the process ends before."""
        await until(
            lambda: self.log.read_text().count(text) >= times or self.process.poll() is not None
        )
        assert self.log.read_text().count(text) >= times, (
            f"the worker ended without {text!r}:\n{self.tail()}"
        )

    async def ended(self) -> int:
        """Wait for the process to end by itself, and return its exit code."""
        await until(lambda: self.process.poll() is not None)
        return self.process.wait()

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def tail(self) -> str:
        """Return the end of the log."""
        return self.log.read_text()[-6000:]


class CountingService:
    """Topics of their own, a producer, and any number of workers."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.requests, self.routes = settings.topic("requests"), settings.topic("routes")
        self.sent = 0
        self.workers: list[Worker] = []
        self.records: dict[str, list[Any]] = {self.routes: [], settings.changelog: []}

    async def start(self) -> None:
        """Connect the clients."""
        address = self.settings.bootstrap
        self.producer = AIOKafkaProducer(bootstrap_servers=address, linger_ms=1)
        self.consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        self.admin = AIOKafkaAdminClient(bootstrap_servers=address)
        for client in (self.producer, self.consumer, self.admin):
            await client.start()
        numbers = range(self.settings.partitions)
        self.consumer.assign(
            [TopicPartition(topic, number) for topic in self.records for number in numbers]
        )
        await self.consumer.seek_to_beginning()

    async def stop(self) -> None:
        """End the workers and the clients."""
        for worker in self.workers:
            worker.kill()
        await self.producer.stop()
        await self.consumer.stop()
        await self.admin.close()

    def worker(self, *, instance: str | None = "one", **options: Any) -> Worker:
        """Start a worker; options are those of its argument, `env` adds settings.

        A successor under the same instance takes over at once, others wait for a dead member's
        session to end.
        """
        worker = Worker(
            self.settings, self.folder / f"worker-{len(self.workers)}.log", options, instance
        )
        self.workers.append(worker)
        return worker

    async def produce(
        self, count: int, *, value: bytes | None = None, partition: int | None = None
    ) -> None:
        """Send events; without a value they carry their running number, keys go round."""
        for _ in range(count):
            key, body = b"k%d" % (self.sent % 40), b"%d" % self.sent if value is None else value
            await self.producer.send(self.requests, value=body, key=key, partition=partition)
            self.sent += value is None
        await self.producer.flush()

    async def leave_behind(self, count: int) -> None:
        """Produce events and leave what a worker leaves that has processed them: answers, state,
        committed offsets.
        """
        counts: dict[tuple[int, bytes], int] = defaultdict(int)
        ends: dict[TopicPartition, OffsetAndMetadata] = {}
        for sequence in range(self.sent, self.sent + count):
            key, body = b"k%d" % (sequence % 40), b"%d" % sequence
            at = await (await self.producer.send(self.requests, value=body, key=key))
            await self.producer.send(self.routes, value=body, key=key)
            counts[at.partition, b"c" + key] += 1
            counts[at.partition, WATERMARK] = at.offset
            ends[at.topic_partition] = OffsetAndMetadata(at.offset + 1, "")
        for (partition, name), value in counts.items():
            await self.producer.send(
                self.settings.changelog, value=NUMBER.pack(value), key=name, partition=partition
            )
        await self.producer.flush()
        self.sent += count
        group = AIOKafkaConsumer(
            bootstrap_servers=self.settings.bootstrap,
            group_id=self.settings.app_id,
            enable_auto_commit=False,
        )
        await group.start()
        group.assign(list(ends))
        await group.commit(ends)
        await group.stop()

    async def committed(self) -> dict[int, int]:
        """Return the group's committed offset of each partition of `requests` that has one."""
        offsets = await self.admin.list_consumer_group_offsets(self.settings.app_id)
        return {
            tp.partition: at.offset
            for tp, at in offsets.items()
            if tp.topic == self.requests and at.offset >= 0
        }

    async def read(self, topic: str) -> list[Any]:
        """Return all records of `routes` or the changelog so far, partition by partition in
        order.
        """
        partitions = [tp for tp in self.consumer.assignment() if tp.topic == topic]
        ends = await self.consumer.end_offsets(partitions)
        while any([await self.consumer.position(tp) < ends[tp] for tp in partitions]):
            for tp, batch in (await self.consumer.getmany(timeout_ms=100)).items():
                self.records[tp.topic] += batch
        return self.records[topic]

    async def answered(self) -> Counter[bytes]:
        """Return how often each event was answered."""
        return Counter(record.value.strip() for record in await self.read(self.routes))

    async def any_answered(self) -> bool:
        """Tell whether there is an answer at all."""
        return bool(await self.answered())

    async def missing(self, since: int = 0) -> int:
        """Return how many of the numbered events have no answer."""
        answered = await self.answered()
        return sum(b"%d" % sequence not in answered for sequence in range(since, self.sent))

    async def table(self) -> dict[tuple[int, bytes], bytes]:
        """Return what a fresh reader makes of the changelog, record by record."""
        state: dict[tuple[int, bytes], bytes] = {}
        for record in await self.read(self.settings.changelog):
            if record.value is None:
                state.pop((record.partition, record.key), None)
            else:
                state[record.partition, record.key] = record.value
        return state

    async def counted(self) -> int:
        """Return the sum of all counts."""
        return sum(
            number(value)
            for (_, key), value in (await self.table()).items()
            if key.startswith(b"c")
        )

    async def all_answered(self, since: int = 0) -> None:
        """Wait until every event has an answer, or every one from a number on."""
        await until_async(lambda: self.missing(since), 0)

    async def all_committed(self) -> None:
        """Wait until the group has committed every event, seen or not."""

        async def behind() -> int:
            committed = await self.committed()
            partitions = [
                TopicPartition(self.requests, number) for number in range(self.settings.partitions)
            ]
            ends = await self.consumer.end_offsets(partitions)
            return sum(end - committed.get(tp.partition, 0) for tp, end in ends.items())

        await until_async(behind, 0)

    async def quiet(self, *, seconds: float = 2.0) -> int:
        """Wait until no new answer has come for a while, and return how many events have none."""
        before, since = -1, time.monotonic()
        while time.monotonic() - since < seconds:
            now = sum((await self.answered()).values())
            if now != before:
                before, since = now, time.monotonic()
            await asyncio.sleep(0.2)
        return await self.missing()


async def stays_alive(worker: Worker) -> None:
    """Give a process the time in which it should have ended, and fail if it did."""
    await asyncio.sleep(LONG_ENOUGH)
    assert worker.process.poll() is None, worker.tail()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, or fail."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.05)


async def until_async(measure: Callable[[], Any], wanted: Any) -> None:
    """Wait until a measurement gives what is wanted, or fail with the last one."""
    deadline = time.monotonic() + PATIENCE
    while (found := await measure()) != wanted:
        assert time.monotonic() < deadline, f"waited for {wanted!r}, still {found!r}"
        await asyncio.sleep(0.2)


@asynccontextmanager
async def counting_service(
    bootstrap: str, folder: Path, *, partitions: int = 4
) -> AsyncIterator[CountingService]:
    """Create the topics of one test, and end its workers with it."""
    name = f"count-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=partitions)
    await create_topics(settings)
    service = CountingService(settings, folder)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()
