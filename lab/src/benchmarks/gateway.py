"""Measure how much later a decision comes over HTTP than over Kafka: `python -m benchmarks.gateway
[--clients 1000] [--rate 200]`.

One broker, one worker, one gateway; contexts are given. Both ways are asked in turn, a slice of a
second each, at the same rate, so that both meet the same machine: the difference counts, not the
figures. Each way has a router on a partition of its own, so that neither reads the other's answers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from commands.broker.child import spawn
from commands.broker.choose import choose_broker
from commands.broker.wire import free_ports
from paretobandit_client import Router
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings

CONTEXT = [0.1, -0.2, 0.3, 0.4, 1.0]
SLICE = 1.0
QUANTILES = (50, 90, 99)
MODELS = {
    "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4},
    "large": {"input_price_per_m": 1.25, "output_price_per_m": 10.0},
}
OVER_KAFKA, OVER_HTTP = "bench", "bench-2"  # on partitions 7 and 3
Ask = Callable[[int], Awaitable[object]]


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[tuple[Settings, int]]:
    """Run broker, worker and gateway; yield the settings and the gateway's port."""
    with choose_broker() as broker:
        (port,) = free_ports(1)
        name = f"bench-{uuid.uuid4().hex[:6]}"
        settings = load_settings(bootstrap=broker.bootstrap, prefix=f"{name}.", app_id=name)
        await create_topics(settings)
        own = {
            "PB_BOOTSTRAP": broker.bootstrap,
            "PB_PREFIX": settings.prefix,
            "PB_APP_ID": name,
            "PB_WEB_PORT": "0",
        }
        own |= {
            "PB_ENCODER_BACKEND": "none",
            "PB_GATEWAY_PORT": str(port),
            "PB_GATEWAY_RATE": "1000000",
        }
        commands = [[sys.executable, "-m", "commands.cli", what] for what in ("worker", "gateway")]
        processes = [
            spawn(c, log=folder / f"{c[-1]}.log", env={**os.environ, **own}) for c in commands
        ]
        try:
            yield settings, port
        finally:
            for process in processes:
                process.kill()
                process.wait()


async def slice_of(ask: Ask, *, first: int, rate: float) -> list[float]:
    """Ask at a rate for a slice, whatever the answers take; return how long each took, in
    milliseconds.
    """
    began, count = time.perf_counter(), int(rate * SLICE)

    async def one(number: int) -> float:
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        asked = time.perf_counter()
        await ask(first + number)
        return 1e3 * (time.perf_counter() - asked)

    return list(await asyncio.gather(*(one(number) for number in range(count))))


async def main(clients: int, rate: float, slices: int) -> None:
    """Measure both ways and print percentiles."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        settings, port = await stack.enter_async_context(service(Path(folder)))
        access: dict[str, Any] = {
            "bootstrap": settings.bootstrap,
            "prefix": settings.prefix,
            "connect_timeout": 60.0,
        }
        router = await stack.enter_async_context(Router(OVER_KAFKA, **access, timeout=60.0))
        web = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=clients))
        )
        home = f"http://127.0.0.1:{port}/v1/routers/{OVER_HTTP}/decisions"

        async def over_http(number: int) -> None:
            body = {"request_id": f"h-{number}", "context": CONTEXT}
            async with web.post(home, json=body) as answer:
                assert answer.status == 200, await answer.text()
                await answer.read()

        async def over_kafka(number: int) -> None:
            await router.route(request_id=f"k-{number}", context=CONTEXT)

        await declare(settings)
        await over_kafka(-1)
        await ready(web, port)
        await opened(over_http, clients)
        ways: dict[str, Ask] = {"Kafka": over_kafka, "HTTP": over_http}
        took: dict[str, list[list[float]]] = {name: [] for name in ways}
        for number in range(slices):
            for name, ask in ways.items():
                took[name].append(await slice_of(ask, first=number * 1_000_000, rate=rate))
    print(json.dumps({"clients": clients, "rate_per_s": rate, **figures(took)}))


def figures(took: dict[str, list[list[float]]]) -> dict[str, dict[str, float]]:
    """Return each way's percentiles over all slices; and how much later HTTP was in a slice than
    Kafka in the one before it, in the median of all such pairs, which a busy moment does not move.
    """
    percentile = {
        name: {
            f"p{q}_ms": round(float(np.percentile(np.concatenate(slices), q)), 2) for q in QUANTILES
        }
        for name, slices in took.items()
    }
    pairs = list(zip(took["Kafka"], took["HTTP"], strict=True))
    later = {
        f"p{q}_ms": round(
            float(np.median([np.percentile(b, q) - np.percentile(a, q) for a, b in pairs])), 2
        )
        for q in QUANTILES
    }
    return {**percentile, "HTTP later by": later}


async def opened(ask: Ask, clients: int) -> None:
    """Let every client open its connection."""
    await asyncio.gather(*(ask(-2 - number) for number in range(clients)))


async def declare(settings: Settings) -> None:
    """Declare the routers."""
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=settings.bootstrap) as producer:
        for router_id in (OVER_KAFKA, OVER_HTTP):
            event = {"router_id": router_id, "models": MODELS, "dimensions": len(CONTEXT)}
            await producer.send_and_wait(
                settings.topic("routers"), json.dumps(event).encode(), key=router_id.encode()
            )


async def ready(web: aiohttp.ClientSession, port: int) -> None:
    """Wait until the gateway is ready."""
    async with asyncio.timeout(120):
        while True:
            try:
                async with web.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--slices", type=int, default=10)
    options = parser.parse_args()
    asyncio.run(main(options.clients, options.rate, options.slices))
