"""What can break: workers, brokers, Redis. Each fault is done to a service under load and
undone.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from commands.broker.child import spawn
from commands.broker.local import LocalKafka
from commands.broker.wire import free_ports
from streams.changelog_format import EPOCH, FENCE
from streams.log.service_topics import topic_specs
from tests.chaos.network import Network
from tests.chaos.watch import WatchedService
from tests.integration.service import Worker

NAMES = ("first", "second", "third")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long faults last and how far their parts are apart, in seconds.

    Attributes:
        redis_frozen, broker_frozen: until it goes on.
        acknowledged_late: for which brokers acknowledge nothing.
        broker_away: until a killed broker is started again.
        beyond_session: for which a worker stays frozen or cut off after its session has ended.
        between_brokers, between_workers: from the end of one restart to the next.
        with_more_workers: until the number of workers changes again.
        after_thaw: until a worker that was frozen has found out what it missed.
        sessions: that pass when the last worker too many was stopped; in sessions.
    """

    redis_frozen: float = 20.0
    acknowledged_late: float = 6.0
    broker_frozen: float = 20.0
    broker_away: float = 8.0
    beyond_session: float = 4.0
    between_brokers: float = 3.0
    between_workers: float = 1.0
    with_more_workers: float = 2.0
    after_thaw: float = 3.0
    sessions: float = 1.0


@dataclass(slots=True)
class Stage:
    """Everything that a fault may touch.

    Attributes:
        session: seconds after which the group misses a silent worker.
        running: workers by their stable names; what ends by itself is started again.
        hit: partitions that a fault is meant to stop; all others must not notice.
        pace: how long faults last.
    """

    service: WatchedService
    kafka: LocalKafka
    network: Network
    redis: RedisServer
    rng: np.random.Generator
    session: float
    running: dict[str, Worker] = field(default_factory=dict)
    hit: frozenset[int] = frozenset()
    pace: Pace = field(default_factory=Pace)

    @property
    def everything(self) -> frozenset[int]:
        """All partitions."""
        return frozenset(range(self.service.settings.partitions))

    async def start_worker(self, name: str) -> None:
        """Start a worker under its stable name, and wait until it takes events."""
        self.running[name] = self.service.worker(instance=name)
        await self.service.ready(self.running[name])

    async def set_up(self, workers: int) -> None:
        """Have so many workers."""
        for name in [name for name in NAMES if name not in self.running][
            : max(0, workers - len(self.running))
        ]:
            await self.start_worker(name)
        for name in list(self.running)[workers:]:
            await self.stop_worker(name)
            await asyncio.sleep(self.session)

    async def stop_worker(self, name: str) -> None:
        """Stop a worker in order."""
        worker = self.running.pop(name)
        worker.terminate()
        await self.service.until(lambda: not worker.running, "an orderly end", poll=False)

    def any_worker(self) -> str:
        """Choose a worker, and note that its partitions will be hit."""
        name = sorted(self.running)[int(self.rng.integers(len(self.running)))]
        self.hit = self.running[name].partitions
        return name

    def leader(self) -> int:
        """Return the broker that leads a partition of the requests, chosen at random."""
        place = TopicPartition(
            self.service.settings.topic("requests"),
            int(self.rng.integers(self.service.settings.partitions)),
        )
        return int(self.service.producer.client.cluster.leader_for_partition(place))

    async def supervise(self) -> None:
        """Start again what has ended by itself, as an operator's supervisor does."""
        while True:
            for name, worker in list(self.running.items()):
                if not worker.running:
                    self.running[name] = self.service.worker(instance=name)
            await asyncio.sleep(0.2)

    async def in_a_thread(self, call: Callable[..., None], *args: int) -> None:
        """Do something to a broker without stopping the load."""
        await asyncio.to_thread(call, *args)


class RedisServer:
    """A Redis that can be killed, frozen and started again, empty, on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._port,) = free_ports(1)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Start it with nothing in it."""
        options = [
            "--bind",
            "127.0.0.1",
            "--port",
            str(self._port),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self._folder),
        ]
        self.process = spawn(["redis-server", *options], log=self._folder / "redis.log")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


Fault = Callable[[Stage], Awaitable[None]]


async def worker_killed(stage: Stage) -> None:
    """Kill a worker at a random moment and start it again at once under its name."""
    await asyncio.sleep(float(stage.rng.random()))
    name = stage.any_worker()
    stage.running[name].kill()
    await stage.start_worker(name)


async def worker_gone(stage: Stage) -> None:
    """Kill a worker and let the other one take over."""
    name = stage.any_worker()
    stage.running.pop(name).kill()
    await asyncio.sleep(stage.session)


async def worker_stopped(stage: Stage) -> None:
    """Stop a worker in order and start it again under its name."""
    name = stage.any_worker()
    await stage.stop_worker(name)
    await stage.start_worker(name)


async def rolling_restart(stage: Stage) -> None:
    """Restart three workers in order, one after the other, as an upgrade does."""
    stage.hit = stage.everything
    for name in list(stage.running):
        await stage.stop_worker(name)
        await stage.start_worker(name)
        await asyncio.sleep(stage.pace.between_workers)


async def workers_scaled(stage: Stage) -> None:
    """Go from one worker to two, three, and back to one: one is killed, one stopped."""
    stage.hit = stage.everything
    for name in ("second", "third"):
        await stage.start_worker(name)
        await asyncio.sleep(stage.pace.with_more_workers)
    stage.running.pop("second").kill()
    await asyncio.sleep(stage.pace.with_more_workers)
    await stage.stop_worker("third")
    await asyncio.sleep(stage.pace.sessions * stage.session)


async def worker_frozen(stage: Stage) -> None:
    """Freeze a worker for longer than its session while the other takes over, then let it go on: it
    must not act as the owner.
    """
    frozen = stage.running[stage.any_worker()]
    frozen.freeze()
    await asyncio.sleep(stage.session + stage.pace.beyond_session)
    frozen.thaw()
    await asyncio.sleep(stage.pace.after_thaw)


async def worker_cut_off(stage: Stage) -> None:
    """Cut a worker off from all brokers for longer than its session while the other takes over,
    then mend the network: it must not act as the owner.
    """
    stage.network.cut(stage.running[stage.any_worker()].process.pid)
    await asyncio.sleep(stage.session + stage.pace.beyond_session)
    stage.network.mend()
    await asyncio.sleep(stage.pace.after_thaw)


async def acks_held(stage: Stage) -> None:
    """Have everything written, and hear of it late."""
    stage.hit = stage.everything
    stage.network.hold()
    await asyncio.sleep(stage.pace.acknowledged_late)
    stage.network.release()


async def acks_lost(stage: Stage) -> None:
    """Have everything written, and lose the connection instead of hearing of it."""
    stage.hit = stage.everything
    stage.network.loses = True
    await asyncio.sleep(stage.pace.acknowledged_late)
    stage.network.loses = False


async def acks_refused(stage: Stage) -> None:
    """Have the brokers refuse what workers write, as too few replicas are in sync: all are
    required, and one broker is killed.
    """
    stage.hit = stage.everything
    node = stage.leader()
    await _require_replicas(stage, len(stage.kafka.nodes))
    await stage.in_a_thread(stage.kafka.kill, node)
    await asyncio.sleep(stage.pace.acknowledged_late)
    await stage.in_a_thread(stage.kafka.start_node, node)
    await _require_replicas(stage, 2)


async def _require_replicas(stage: Stage, count: int) -> None:
    settings = stage.service.settings
    written = {settings.changelog, settings.topic("routes")}
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap)
    await admin.start()
    await admin.alter_configs(
        [
            ConfigResource(ConfigResourceType.TOPIC, spec.name, spec.config(count))
            for spec in topic_specs(settings)
            if spec.name in written
        ]
    )
    await admin.close()


async def owner_fenced(stage: Stage) -> None:
    """Write a fence into a partition of a worker that is at work, as another owner would: what it
    writes next is void.
    """
    name = stage.any_worker()
    worker, service = stage.running[name], stage.service
    number = sorted(stage.hit)[int(stage.rng.integers(len(stage.hit)))]
    changelog = service.settings.changelog
    last = (await service.log_of(changelog))[number][-1]
    epoch = b"%d" % (1 + int(dict(last.headers)[EPOCH]))
    await service.producer.send_and_wait(
        changelog, epoch, key=FENCE, partition=number, headers=[(EPOCH, epoch)]
    )
    await service.until(lambda: not worker.running, "the end of who was fenced", poll=False)
    await service.until(lambda: stage.running[name] is not worker, "the next", poll=False)
    await service.ready(stage.running[name])


async def fresh_machine(stage: Stage) -> None:
    """Lose every worker and Redis at once; one on a machine that has seen nothing recovers from the
    topics alone.
    """
    stage.hit = stage.everything
    workers, stage.running = stage.running, {}
    for worker in workers.values():
        worker.kill()
    stage.redis.stop()
    stage.redis.start()
    await stage.start_worker(f"fresh-{int(stage.rng.integers(10**6))}")


async def broker_killed(stage: Stage) -> None:
    """Kill a broker that leads some of the partitions, and start it again after a while."""
    stage.hit = stage.everything
    node = stage.leader()
    await stage.in_a_thread(stage.kafka.kill, node)
    await asyncio.sleep(stage.pace.broker_away)
    await stage.in_a_thread(stage.kafka.start_node, node)


async def broker_frozen(stage: Stage) -> None:
    """Hang a broker that leads some of the partitions for longer than its session."""
    stage.hit = stage.everything
    node = stage.leader()
    stage.kafka.pause(node)
    await asyncio.sleep(stage.pace.broker_frozen)
    stage.kafka.resume(node)


async def brokers_restarted(stage: Stage) -> None:
    """Restart all brokers in order, one after the other."""
    stage.hit = stage.everything
    for node in stage.kafka.nodes:
        await stage.in_a_thread(stage.kafka.stop_node, node)
        await stage.in_a_thread(stage.kafka.start_node, node)
        await asyncio.sleep(stage.pace.between_brokers)


async def redis_killed(stage: Stage) -> None:
    """Kill Redis and start it again, empty."""
    stage.hit = stage.everything
    stage.redis.stop()
    await asyncio.sleep(2.0)
    stage.redis.start()


async def redis_frozen(stage: Stage) -> None:
    """Hang Redis for longer than a worker waits for it."""
    stage.hit = stage.everything
    stage.redis.send(signal.SIGSTOP)
    await asyncio.sleep(stage.pace.redis_frozen)
    stage.redis.send(signal.SIGCONT)


FAULTS: dict[str, tuple[Fault, int]] = {
    fault.__name__: (fault, workers)
    for fault, workers in (
        (worker_killed, 2),
        (worker_gone, 2),
        (worker_stopped, 2),
        (rolling_restart, 3),
        (worker_frozen, 2),
        (worker_cut_off, 2),
        (owner_fenced, 2),
        (workers_scaled, 1),
        (fresh_machine, 1),
        (broker_killed, 1),
        (broker_frozen, 1),
        (brokers_restarted, 1),
        (acks_held, 1),
        (acks_lost, 1),
        (acks_refused, 1),
        (redis_killed, 1),
        (redis_frozen, 1),
    )
}
"""Each with the workers that it needs before it begins."""
