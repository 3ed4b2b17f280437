"""What can break: workers, brokers, Redis. Each fault is done to a service under load and undone."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from streams.kafka.child import spawn
from streams.kafka.local import LocalKafka
from streams.kafka.wire import free_ports
from tests.chaos.watch import WatchedService
from tests.integration.service import Worker

SESSION_SECONDS = 6.0


@dataclass(slots=True)
class Stage:
    """Everything that a fault may touch."""

    service: WatchedService
    kafka: LocalKafka
    redis: RedisServer
    rng: np.random.Generator
    running: dict[str, Worker] = field(default_factory=dict)

    async def start_worker(self, name: str) -> None:
        """Start a worker under its stable name, and wait until it takes events."""
        self.running[name] = self.service.worker(instance=name)
        await self.service.ready(self.running[name])

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
        options = ["--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--appendonly", "no", "--dir", str(self._folder)]
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
    """Kill a worker at a random moment and start it again at once."""
    await asyncio.sleep(float(stage.rng.random()))
    name = list(stage.running)[int(stage.rng.integers(len(stage.running)))]
    stage.running[name].kill()
    await stage.start_worker(name)


async def worker_stopped(stage: Stage) -> None:
    """Stop a worker in order and start it again."""
    name, worker = next(iter(stage.running.items()))
    worker.terminate()
    await stage.service.until(lambda: not worker.running, "an orderly end", poll=False)
    await stage.start_worker(name)


async def workers_scaled(stage: Stage) -> None:
    """Go from one worker to two, three, and back to one: one is killed, one stopped."""
    for name in ("second", "third"):
        await stage.start_worker(name)
        await asyncio.sleep(2.0)
    stage.running.pop("second").kill()
    await asyncio.sleep(2.0)
    third = stage.running.pop("third")
    third.terminate()
    await stage.service.until(lambda: not third.running, "an orderly end", poll=False)
    await asyncio.sleep(SESSION_SECONDS)


async def worker_frozen(stage: Stage) -> None:
    """Freeze a worker for longer than its session while another takes over, then let it go on: it must not act as the owner."""
    await stage.start_worker("other")
    await asyncio.sleep(2.0)
    frozen = next(iter(stage.running.values()))
    frozen.freeze()
    await asyncio.sleep(SESSION_SECONDS * 2.5)
    frozen.thaw()
    await asyncio.sleep(5.0)
    stage.running.pop("other").terminate()
    await asyncio.sleep(SESSION_SECONDS)


async def broker_killed(stage: Stage) -> None:
    """Kill a broker, each one in its turn, and start it again after a while."""
    node = 1 + int(stage.rng.integers(len(stage.kafka.nodes)))
    await stage.in_a_thread(stage.kafka.kill, node)
    await asyncio.sleep(8.0)
    await stage.in_a_thread(stage.kafka.start_node, node)


async def broker_frozen(stage: Stage) -> None:
    """Hang a broker for 20 seconds."""
    node = 1 + int(stage.rng.integers(len(stage.kafka.nodes)))
    stage.kafka.pause(node)
    await asyncio.sleep(20.0)
    stage.kafka.resume(node)


async def brokers_restarted(stage: Stage) -> None:
    """Restart all brokers in order, one after the other."""
    for node in stage.kafka.nodes:
        await stage.in_a_thread(stage.kafka.stop_node, node)
        await stage.in_a_thread(stage.kafka.start_node, node)
        await asyncio.sleep(3.0)


async def redis_killed(stage: Stage) -> None:
    """Kill Redis and start it again, empty."""
    stage.redis.stop()
    await asyncio.sleep(2.0)
    stage.redis.start()


async def redis_frozen(stage: Stage) -> None:
    """Hang Redis for 20 seconds."""
    stage.redis.send(signal.SIGSTOP)
    await asyncio.sleep(20.0)
    stage.redis.send(signal.SIGCONT)


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        worker_killed,
        worker_stopped,
        workers_scaled,
        worker_frozen,
        broker_killed,
        broker_frozen,
        brokers_restarted,
        redis_killed,
        redis_frozen,
    )
}
