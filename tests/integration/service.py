"""Drive real workers on a real broker: start, kill, freeze and stop them, send events, collect what
they say.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from agents.table.recovered import Recovered
from router_state.engine import Engine
from schemas.dlq import DeadLetter
from streams.changelog_format import EPOCH
from streams.log.service_topics import create_topics
from streams.partitioner import partition_of
from streams.settings import Settings
from streams.state.table_partition import Partition
from tests.integration.forked import ROOT, inherited, start

SOURCES = ("routers", "requests", "costs", "rewards", "pools", "leases", "kin")
ANSWERS = ("routes", "lambda", "alerts", "refusals", "dlq")
MODULE = "tests.integration.service_worker"
PATIENCE = 60.0
DIMENSIONS = 5
MODELS = {
    "llama": {"input_price_per_m": 0.1, "output_price_per_m": 0.1, "onboarding_pulls": 0},
    "mistral": {"input_price_per_m": 0.5, "output_price_per_m": 1.5, "onboarding_pulls": 0},
    "gemini": {"input_price_per_m": 1.25, "output_price_per_m": 10.0, "onboarding_pulls": 0},
}


def router(router_id: str, **changed: Any) -> dict[str, Any]:
    """Return a declaration of three models without priors."""
    event = {
        "router_id": router_id,
        "models": MODELS,
        "dimensions": DIMENSIONS,
        "budget_usd_per_request": 6.62e-4,
    }
    return {**event, **changed}


def request(router_id: str, request_id: str, *, seed: int = 0, **changed: Any) -> dict[str, Any]:
    """Return a request with a context drawn from a seed."""
    context = [*np.random.default_rng(seed).normal(size=DIMENSIONS - 1).round(3).tolist(), 1.0]
    return {"router_id": router_id, "request_id": request_id, "context": context, **changed}


def cost(router_id: str, request_id: str, cost_usd: float, **changed: Any) -> dict[str, Any]:
    """Return a bill."""
    return {"router_id": router_id, "request_id": request_id, "cost_usd": cost_usd, **changed}


def reward(router_id: str, request_id: str, value: float, **changed: Any) -> dict[str, Any]:
    """Return a reward."""
    return {
        "router_id": router_id,
        "request_id": request_id,
        "reward": value,
        "source": "judge",
        **changed,
    }


@lru_cache(maxsize=16_384)
def parsed(value: bytes) -> dict[str, Any]:
    """Return a decision, which is asked for again with each look at what has come."""
    return dict(orjson.loads(value))


class Worker:
    """One worker process and its log."""

    def __init__(
        self,
        settings: Settings,
        log: Path,
        environment: Mapping[str, str],
        module: str = MODULE,
    ) -> None:
        own = {
            "PB_BOOTSTRAP": settings.bootstrap,
            "PB_PREFIX": settings.prefix,
            "PB_APP_ID": settings.app_id,
        }
        own |= {
            "PB_PARTITIONS": str(settings.partitions),
            "PB_WEB_PORT": "0",
            "PB_ENCODER_BACKEND": "none",
            "PB_VALIDATE_STATE": "true",
        }
        self.log = log
        self.started = time.monotonic()
        self.process = start(
            module.split(), log=log, env={**inherited(), **own, **environment}, cwd=ROOT
        )

    @property
    def running(self) -> bool:
        """Whether the process is there; a frozen one is."""
        return self.process.poll() is None

    @property
    def ready(self) -> bool:
        """Whether it has recovered and takes events, or did once."""
        return "Worker ready" in self.log.read_text(errors="replace")

    @property
    def partitions(self) -> frozenset[int]:
        """Which partitions it was given last, as its log says."""
        given = [
            line
            for line in self.log.read_text(errors="replace").splitlines()
            if "Setting newly assigned" in line
        ]
        return (
            frozenset(int(number) for number in re.findall(r"partition=(\d+)", given[-1]))
            if given
            else frozenset()
        )

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Stop its clock, as an overloaded or migrated machine does."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to stop in order."""
        self.process.terminate()

    def tail(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(errors="replace")[-5000:]


class RunningService:
    """Topics of their own, clients, and any number of workers."""

    def __init__(self, settings: Settings, folder: Path, environment: Mapping[str, str]) -> None:
        self.settings = settings
        self.environment = dict(environment)
        self.workers: list[Worker] = []
        self.records: dict[str, list[Any]] = {name: [] for name in ANSWERS}
        self.partition_of = partial(partition_of, partitions=settings.partitions)
        self._folder = folder
        self._short = {settings.topic(name): name for name in ANSWERS}

    async def start(self) -> None:
        """Connect the clients."""
        address, numbers = self.settings.bootstrap, range(self.settings.partitions)
        # A leader that is killed would take with it what it alone has acknowledged.
        lasting = {"acks": "all", "enable_idempotence": True}
        self.producer = AIOKafkaProducer(
            bootstrap_servers=address, linger_ms=1, max_request_size=20 * 2**20, **lasting
        )
        self.consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await self.producer.start()
        await self.consumer.start()
        self.consumer.assign(
            [TopicPartition(topic, number) for topic in self._short for number in numbers]
        )
        await self.consumer.seek_to_beginning()

    def forget(self) -> RunningService:
        """Drop what the service has said so far, for the next test that shares it."""
        for records in self.records.values():
            records.clear()
        return self

    async def stop(self) -> None:
        """End the workers and the clients."""
        for worker in self.workers:
            worker.kill()
        await self.producer.stop()
        await self.consumer.stop()

    def worker(
        self,
        *,
        instance: str | None = None,
        module: str = MODULE,
        **environment: str,
    ) -> Worker:
        """Start a worker; keyword arguments are environment variables."""
        own = {"PB_INSTANCE_ID": instance} if instance else {}
        log = self._folder / f"worker-{len(self.workers)}.log"
        worker = Worker(self.settings, log, {**self.environment, **own, **environment}, module)
        self.workers.append(worker)
        return worker

    @asynccontextmanager
    async def supervised(self, instance: str) -> AsyncIterator[None]:
        """Start the last worker again whenever it has left, as one does that was frozen beyond its
        session: on a busy machine any may be.
        """

        async def supervise() -> None:
            while True:
                if not self.workers[-1].running:
                    self.worker(instance=instance)
                await asyncio.sleep(0.1)

        supervising = asyncio.create_task(supervise())
        try:
            yield
        finally:
            supervising.cancel()

    async def ready(self, worker: Worker) -> Worker:
        """Wait until a worker takes events."""
        await self.until(
            lambda: worker.ready or not worker.running, "a worker that is ready", poll=False
        )
        assert worker.ready, f"the worker ended:\n{worker.tail()}"
        return worker

    async def send(self, topic: str, event: Mapping[str, Any] | bytes | None, **record: Any) -> Any:
        """Send one event, by default with its router's key, and wait until the broker has it."""
        return await (await self.post(topic, event, **record))

    async def post(self, topic: str, event: Mapping[str, Any] | bytes | None, **record: Any) -> Any:
        """Hand one event to the producer; the future that is returned holds its delivery."""
        if isinstance(event, Mapping):
            key = event.get("router_id", event.get("pool_id", ""))
            record.setdefault("key", key.encode())
            event = json.dumps(event).encode()
        return await self.producer.send(self.settings.topic(topic), event, **record)

    async def poll(self) -> None:
        """Collect what the workers have said since the last time."""
        for tp, batch in (await self.consumer.getmany(timeout_ms=50)).items():
            self.records[self._short[tp.topic]] += batch

    async def until(self, condition: Callable[[], Any], what: str, *, poll: bool = True) -> None:
        """Collect until a condition holds, or fail with the end of every worker's log."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n\n".join(
                    f"{worker.log.name} (running: {worker.running}):\n{worker.tail()}"
                    for worker in self.workers
                )
                raise AssertionError(f"waited in vain for {what}\n{logs}")
            if poll:
                await self.poll()
            else:
                await asyncio.sleep(0.05)

    def beside(self, router_id: str) -> str:
        """Return the name of another router that is on the same partition, so that its events
        follow in order.
        """
        return next(
            name
            for name in map(str, range(1000))
            if self.partition_of(name) == self.partition_of(router_id)
        )

    def routes(self, router_id: str | None = None) -> list[dict[str, Any]]:
        """Return the decisions so far."""
        routes = [parsed(record.value) for record in self.records["routes"]]
        return [route for route in routes if router_id in (None, route["router_id"])]

    def route(self, request_id: str) -> dict[str, Any] | None:
        """Return the first decision of a request, or None."""
        return next((route for route in self.routes() if route["request_id"] == request_id), None)

    def lambda_of(self, router_id: str) -> dict[str, Any]:
        """Return a router's last `pb.lambda`, or nothing."""
        for record in reversed(self.records["lambda"]):
            if record.key == router_id.encode():
                return {} if record.value is None else dict(json.loads(record.value))
        return {}

    def dead_letters(self) -> dict[tuple[str, int, int], tuple[DeadLetter, Any]]:
        """Return the dead letters by source topic (short), partition and offset."""
        found = {}
        for record in self.records["dlq"]:
            letter = DeadLetter.from_headers(record.headers)
            found[
                letter.topic.removeprefix(self.settings.prefix), letter.partition, letter.offset
            ] = (letter, record)
        return found

    def reasons(self) -> Counter[str]:
        """Return how many source events were dead-lettered for each reason."""
        return Counter(letter.reason for letter, _ in self.dead_letters().values())

    async def log_of(self, topic: str) -> dict[int, list[Any]]:
        """Return every record of a topic (full name), by partition."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.settings.bootstrap, enable_auto_commit=False
        )
        await consumer.start()
        try:
            partitions = [
                TopicPartition(topic, number) for number in range(self.settings.partitions)
            ]
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(partitions)
            log: dict[int, list[Any]] = {tp.partition: [] for tp in partitions}
            while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
                for tp, batch in (await consumer.getmany(timeout_ms=100)).items():
                    log[tp.partition] += batch
            return log
        finally:
            await consumer.stop()

    async def partitions(self) -> dict[int, Partition]:
        """Return what a fresh reader makes of the changelog."""
        changelog = await self.log_of(self.settings.changelog)
        return {number: recovered(number, records) for number, records in changelog.items()}

    async def engine(self, router_id: str) -> Engine:
        """Return a router as the changelog has it."""
        state = Recovered((await self.partitions())[self.partition_of(router_id)])
        engine = state.routers.engine(router_id)
        assert engine is not None, f"the changelog does not know {router_id}"
        return engine


def recovered(number: int, changelog: Iterable[Any]) -> Partition:
    """Return what a fresh reader makes of the records of a partition's changelog."""
    partition = Partition(number)
    for record in changelog:
        epoch = int(dict(record.headers)[EPOCH])
        partition.recover(record.key, record.value, offset=record.offset, epoch=epoch)
    return partition


@asynccontextmanager
async def running_service(
    bootstrap: str, folder: Path, *, partitions: int = 2, **environment: str
) -> AsyncIterator[RunningService]:
    """Create the topics of one test, and end its workers with it; keyword arguments are environment
    variables of all workers. A partition of a topic costs the broker five milliseconds.
    """
    name = f"svc-{uuid.uuid4().hex[:8]}"
    settings = Settings(bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=partitions)
    await create_topics(settings)
    service = RunningService(settings, folder, environment)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()
