"""The gateway as a process of its own before a real service, for tests of whatever goes through
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from commands.broker.wire import free_ports
from doors.gateway.api_keys import new_key
from tests.integration.service import PATIENCE, RunningService, Worker, router, running_service

KEY, LINE = new_key("tests", routers="*")
CONTEXT = [0.1, -0.2, 0.3, 0.4, 1.0]


@dataclass
class Gateway:
    """A service with a gateway before it."""

    service: RunningService
    process: Worker
    port: int

    def client(self, **options: Any) -> httpx.AsyncClient:
        """Return a client with a key."""
        authorized = {"Authorization": f"Bearer {KEY}"}
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers=authorized,
            timeout=PATIENCE,
            **options,
        )

    async def ready(self) -> None:
        """Wait until it can send and read."""
        async with self.client() as client:
            for _ in range(int(PATIENCE / 0.1)):
                assert self.process.running, self.process.tail()
                try:
                    if (await client.get("/readyz")).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.1)
        raise AssertionError(f"the gateway is not ready:\n{self.process.tail()}")

    async def declare(self, router_id: str, **fields: Any) -> None:
        """Declare a router, and wait until it is in force: a request waits half a second for it, a
        busy machine may take longer.
        """
        await self.service.send("routers", router(router_id, **fields))
        await self.service.until(lambda: self.service.lambda_of(router_id), f"router {router_id}")

    async def settled(self, router_id: str, **wanted: float) -> dict[str, Any]:
        """Wait until a router's books say this."""
        await self.service.until(
            lambda: wanted.items() <= self.service.lambda_of(router_id).items(), f"{wanted}"
        )
        return self.service.lambda_of(router_id)


@asynccontextmanager
async def running_gateway(kafka: str, folder: Path) -> AsyncIterator[Gateway]:
    """Run one worker and one gateway."""
    async with running_service(
        kafka, folder, PB_ORPHAN_WAIT="2", PB_UNKNOWN_ROUTER_WAIT="0.5"
    ) as service:
        (port,) = free_ports(1)
        worker = service.worker(instance="one")
        gateway = Gateway(service, gateway_process(service, port, folder / "gateway.log"), port)
        service.workers.insert(0, gateway.process)  # ended with the workers
        await service.ready(worker)
        await gateway.ready()
        async with service.supervised("one"):
            yield gateway


def gateway_process(service: RunningService, port: int, log: Path) -> Worker:
    """Start a gateway on a port."""
    access = {
        "PB_GATEWAY_PORT": str(port),
        "PB_GATEWAY_KEYS": LINE,
        "PB_GATEWAY_RATE": "100000",
        "PB_GATEWAY_TIMEOUT": "60",
    }
    return Worker(service.settings, log, access, "commands.cli gateway")
