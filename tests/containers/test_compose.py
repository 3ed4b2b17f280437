"""The compose file: broker, Redis, topics and two workers come up, and a request is decided."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from commands.broker.wire import free_ports

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 420.0
"""Most seconds in which the image is built: the kernel's modules are compiled beside other work."""
pytestmark = pytest.mark.timeout(BUILD_SECONDS + 300.0)
CONTEXT = [0.1] * 25 + [1.0]
ROUTER: dict[str, Any] = {
    "router_id": "chat",
    "budget_usd_per_request": 6.62e-4,
    "models": {
        "small": {"input_price_per_m": 0.1, "output_price_per_m": 0.4},
        "large": {"input_price_per_m": 3.0, "output_price_per_m": 15.0},
    },
}


@dataclass(frozen=True)
class Service:
    """A running compose project."""

    project: str
    bootstrap: str
    web: tuple[int, int]
    environment: dict[str, str]

    def compose(self, *command: str, timeout: float = 250.0) -> str:
        """Run `docker compose` on the project; the logs of all services are in the failure."""
        base = ["docker", "compose", "-f", "docker/compose.yaml", "-p", self.project]
        done = subprocess.run(
            [*base, *command],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if done.returncode != 0:
            logs = subprocess.run(
                [*base, "logs", "--tail", "40"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            pytest.fail(
                f"{' '.join(command)}: {done.stderr[-2000:]}\n{logs.stdout[-6000:]}", pytrace=False
            )
        return done.stdout


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    ports = free_ports(3)
    names = ("PARETOBANDIT_KAFKA_PORT", "PARETOBANDIT_WEB_PORT_1", "PARETOBANDIT_WEB_PORT_2")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PB_")}
    environment |= dict(zip(names, map(str, ports), strict=True)) | {
        "PARETOBANDIT_IMAGE": "paretobandit-streams:test"
    }
    running = Service(
        f"pbtest{uuid4().hex[:8]}", f"127.0.0.1:{ports[0]}", (ports[1], ports[2]), environment
    )
    try:
        running.compose("build", timeout=BUILD_SECONDS)
        running.compose("up", "-d", "--wait", "--wait-timeout", "150")
        yield running
    finally:
        running.compose("down", "-v", "--timeout", "5")


async def declare(bootstrap: str, router: dict[str, Any]) -> None:
    """Declare a router."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        await producer.send_and_wait(
            "pb.routers", json.dumps(router).encode(), key=router["router_id"].encode()
        )


async def decide(bootstrap: str, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request, and return its decision."""
    consumer = AIOKafkaConsumer(
        "pb.routes", bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    )
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer, consumer:
        await producer.send_and_wait(
            "pb.requests", json.dumps(request).encode(), key=request["router_id"].encode()
        )
        async with asyncio.timeout(60):
            async for record in consumer:
                decision: dict[str, Any] = json.loads(record.value)
                if decision["request_id"] == request["request_id"]:
                    return decision
    raise AssertionError("the consumer ended")


def test_both_workers_are_ready_on_loopback(service: Service) -> None:
    for port in service.web:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            assert answer.status == 200


def test_a_prompt_is_encoded_and_decided(service: Service) -> None:
    def pbstream(*command: str) -> str:
        return service.compose(
            "exec", "-T", "worker-1", "pbstream", *command, "--router", "prompts", "--timeout", "60"
        )

    pbstream("models", "add", "small", "--input-price", "0.1", "--output-price", "0.4")
    pbstream("models", "add", "large", "--input-price", "3", "--output-price", "15")
    pbstream("budget", "set", "0.001")
    decision = json.loads(pbstream("request", "Why is the sky blue?", "--json"))
    assert decision["model"] in {"small", "large"}


async def test_a_request_is_decided_whichever_worker_is_killed_or_replaced(
    service: Service,
) -> None:
    await declare(service.bootstrap, ROUTER)
    request = {"router_id": "chat", "context": CONTEXT}
    assert (await decide(service.bootstrap, request | {"request_id": "r1"}))["seq"] == 1
    service.compose("kill", "worker-1")
    assert (await decide(service.bootstrap, request | {"request_id": "r2"}))["seq"] == 2
    # As after an upgrade: another container takes the dead worker's place in the group.
    service.compose("up", "-d", "--no-deps", "--force-recreate", "--wait", "worker-1")
    service.compose("kill", "worker-2")
    assert (await decide(service.bootstrap, request | {"request_id": "r3"}))["seq"] == 3
