"""A network between workers and brokers that can be cut, and that can hold or lose what brokers
acknowledge. Clients and brokers among themselves go past it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import psutil

from commands.broker.local import LocalKafka

PLACE = "127.0.0.2"
"""Where workers find the brokers: this network, on the ports where brokers listen for them."""
LISTENERS = {
    "listeners": "CLIENT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller_port},"
    "WORKERS://127.0.0.1:${spare_port}",
    "advertised.listeners": f"CLIENT://127.0.0.1:${{port}},WORKERS://{PLACE}:${{spare_port}}",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,WORKERS:PLAINTEXT",
}
"""Properties of brokers that are reached through this network."""
PRODUCE = 0
"""Number of the request that writes records, in Kafka's protocol."""


def chaotic() -> LocalKafka:
    """Return three brokers that workers reach through a network."""
    return LocalKafka(brokers=3, properties=LISTENERS)


class Network:
    """Connections of workers to all brokers, in a thread of its own.

    Attributes:
        loses: whether connections end where a broker acknowledges records, once they are written.
    """

    def __init__(self, kafka: LocalKafka) -> None:
        self._ports = [node.spare_port for node in kafka.nodes.values()]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._cut: psutil.Process | None = None
        self._passes = asyncio.Event()
        self._acknowledges = asyncio.Event()
        self.loses = False

    @property
    def bootstrap(self) -> str:
        """Where workers find the brokers."""
        return ",".join(f"{PLACE}:{port}" for port in self._ports)

    def start(self) -> None:
        """Let workers connect."""
        self._thread.start()
        self._run(self._listen())

    def stop(self) -> None:
        """End all connections."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self, pid: int) -> None:
        """Let nothing pass between a process and the brokers; its connections stay open."""
        self._loop.call_soon_threadsafe(self._passes.clear)
        self._cut = psutil.Process(pid)

    def mend(self) -> None:
        """Let everything pass again."""
        self._cut = None
        self._loop.call_soon_threadsafe(self._passes.set)

    def hold(self) -> None:
        """Keep what brokers acknowledge of records."""
        self._loop.call_soon_threadsafe(self._acknowledges.clear)

    def release(self) -> None:
        """Pass on what brokers have acknowledged meanwhile."""
        self._loop.call_soon_threadsafe(self._acknowledges.set)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30.0)

    async def _listen(self) -> None:
        self._passes.set()
        self._acknowledges.set()
        for port in self._ports:

            async def connected(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int = port
            ) -> None:
                await self._connect(reader, writer, port)

            self._servers.append(await asyncio.start_server(connected, PLACE, port))

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(
        self, worker: asyncio.StreamReader, to_worker: asyncio.StreamWriter, port: int
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        source = to_worker.get_extra_info("peername")[1]
        writes = set[bytes]()
        to_broker: asyncio.StreamWriter | None = None
        try:
            await self._open(source)
            with suppress(OSError, asyncio.IncompleteReadError):
                broker, to_broker = await asyncio.open_connection("127.0.0.1", port)
                await _first(
                    self._forward(worker, to_broker, source, writes),
                    self._backward(broker, to_worker, source, writes),
                )
        finally:
            self._tasks.discard(task)
            for writer in (to_worker, to_broker):
                if writer is not None:
                    writer.close()

    async def _forward(
        self,
        worker: asyncio.StreamReader,
        to_broker: asyncio.StreamWriter,
        source: int,
        writes: set[bytes],
    ) -> None:
        """Pass requests on, and note which of them write records."""
        while True:
            size = await worker.readexactly(4)
            request = await worker.readexactly(int.from_bytes(size))
            if int.from_bytes(request[:2]) == PRODUCE:
                writes.add(request[4:8])
            await self._open(source)
            to_broker.write(size + request)
            await to_broker.drain()

    async def _backward(
        self,
        broker: asyncio.StreamReader,
        to_worker: asyncio.StreamWriter,
        source: int,
        writes: set[bytes],
    ) -> None:
        """Pass answers on; those about records may have to wait, or end the connection."""
        while True:
            size = await broker.readexactly(4)
            answer = await broker.readexactly(int.from_bytes(size))
            if answer[:4] in writes:
                writes.discard(answer[:4])
                await self._acknowledges.wait()
                if self.loses:
                    return
            await self._open(source)
            to_worker.write(size + answer)
            await to_worker.drain()

    async def _open(self, source: int) -> None:
        """Return when the connection from this port is not cut."""
        while (cut := self._cut) is not None and await asyncio.to_thread(_has, cut, source):
            await self._passes.wait()


async def _first(*ways: Coroutine[Any, Any, None]) -> None:
    """Run both ways of a connection until one of them ends."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _has(process: psutil.Process, port: int) -> bool:
    """Tell whether a connection from a port is this process's."""
    with suppress(psutil.NoSuchProcess):
        return any(one.laddr.port == port for one in process.net_connections("tcp4") if one.laddr)
    return False
