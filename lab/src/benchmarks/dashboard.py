"""The dashboard under load: many routers, many events a second; what its server and a page take.

    python -m benchmarks.dashboard --bootstrap 127.0.0.1:9092 [--routers 10000] [--rate 1000]

Events are written as a service would write them, without workers: λ_t, decisions, labels, bills.
The page scrolls, sorts and searches meanwhile in a real Chromium; its longest frame is what
`requestAnimationFrame` saw.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import numpy as np
import psutil
from aiokafka import AIOKafkaProducer
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

from commands.broker.wire import free_ports
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings

MODELS = (("small", 0.7, 3e-5), ("middle", 0.85, 3e-4), ("large", 0.95, 3e-3))
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
BUDGET_USD = 3e-4
WATCH = """window.frames = [];
    let last = performance.now();
    (function frame(now) { window.frames.push(now - last); last = now;
        requestAnimationFrame(frame); })(last)"""
SCROLL = """const done = arguments[0], step = document.documentElement.scrollHeight / 60;
    let at = 0;
    (function go() { window.scrollBy(0, step); ++at < 60 ? setTimeout(go, 50) : done(); })()"""
ROWS = "return document.querySelectorAll('.rows .row a[href]').length"


class Writer:
    """Writes what a service of many routers would."""

    def __init__(self, settings: Settings, routers: int) -> None:
        self._settings = settings
        self._names = [f"router-{number:05d}" for number in range(routers)]
        self._decided = np.zeros(routers, dtype=int)
        self._spend = np.zeros(routers)
        self._rng = np.random.default_rng(0)
        self.sent = 0

    async def begin(self, producer: AIOKafkaProducer) -> None:
        """Write a state of every router."""
        for at in range(len(self._names)):
            await self._send(producer, "lambda", at, self._state(at))
        await producer.flush()

    async def keep(self, producer: AIOKafkaProducer, *, rate: float, seconds: float) -> None:
        """Write `rate` events a second: a decision, its bill, its label, the state."""
        started, begun = time.monotonic(), self.sent
        while (gone := time.monotonic() - started) < seconds:
            while self.sent - begun < gone * rate:
                await self._request(producer, int(self._rng.integers(len(self._names))))
            await asyncio.sleep(0.01)

    async def _request(self, producer: AIOKafkaProducer, at: int) -> None:
        request_id, model = f"r{self.sent}", int(self._rng.integers(3))
        name, reward, cost = MODELS[model]
        candidates = [
            {
                "model": one,
                "mean": mean,
                "bonus": 0.0,
                "penalty": 0.1,
                "score": mean - 0.1,
                "expected_cost_usd": usd,
                "excluded": None,
            }
            for one, mean, usd in MODELS
        ]
        self._decided[at] += 1
        self._spend[at] += cost
        decision = {
            "request_id": request_id,
            "model": name,
            "seq": int(self._decided[at]),
            "reason": "ucb",
            "propensity": 1.0,
            "candidates": candidates,
            "expected_reward": reward,
            "expected_cost_usd": cost,
            "lambda_t": 0.1,
            "config_offset": 0,
            "decided_at": _now(),
            "repeat": False,
        }
        await self._send(producer, "routes", at, decision)
        await self._send(producer, "costs", at, {"request_id": request_id, "cost_usd": cost})
        label = {"request_id": request_id, "reward": reward, "source": "judge"}
        await self._send(producer, "rewards", at, label)
        await self._send(producer, "lambda", at, self._state(at))

    def _state(self, at: int) -> dict[str, Any]:
        decided = int(self._decided[at])
        return {
            "seq": decided,
            "lambda_t": 0.1 + 0.01 * (at % 50),
            "budget_usd_per_request": BUDGET_USD,
            "spend_usd": float(self._spend[at]),
            "committed_usd": 0.0,
            "in_flight": at % 7,
            "decided": decided,
            "settled": decided,
            "expired": 0,
            "rewards_applied": decided,
            "unmatched_cost_usd": 0.0,
            "config_offset": 0,
            "observed_at": _now(),
        }

    async def _send(
        self, producer: AIOKafkaProducer, name: str, at: int, event: dict[str, Any]
    ) -> None:
        router_id = self._names[at]
        value = json.dumps({"router_id": router_id, **event}).encode()
        await producer.send(self._settings.topic(name), value, key=router_id.encode())
        self.sent += 1


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _browser(profile: str) -> Chrome:
    options = ChromeOptions()
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.binary_location = "/usr/bin/chromium"
    return Chrome(options=options, service=ChromeService("/usr/bin/chromedriver"))


def _look(driver: Chrome, address: str) -> dict[str, Any]:
    """Open the page, scroll, sort and search for as long as events come; return its figures."""
    driver.get(address)
    _until(driver, f"{ROWS} > 5")
    paint = driver.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    )
    loaded = driver.execute_script(
        """const of = kind => performance.getEntriesByType(kind);
        const all = [...of('navigation'), ...of('resource')]
            .filter(one => !one.name.includes('/api/'));
        return [all.length, all.reduce((sum, one) => sum + one.encodedBodySize, 0)]"""
    )
    driver.execute_script(WATCH)
    driver.execute_async_script(SCROLL)
    scrolled = driver.execute_script("return window.frames.splice(0)")
    driver.execute_script("window.scrollTo(0, 0)")
    driver.execute_script("document.querySelectorAll('.heads button')[3].click()")
    time.sleep(2.0)
    driver.find_element("id", "search").send_keys("router-0042")
    time.sleep(2.0)
    sought = driver.execute_script("return window.frames.splice(0)")
    return {
        "first paint, ms": paint,
        "requests of the page, and bytes": loaded,
        "frames while scrolling, ms: median, 95 %, longest": _spread(scrolled),
        "frames while sorting and searching, ms": _spread(sought),
    }


def _spread(frames: list[float]) -> list[int]:
    return [round(float(np.percentile(frames, share))) for share in (50, 95, 100)]


def _ready(address: str) -> None:
    """Wait until the dashboard has read the past."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=2.0):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(address)


def _until(driver: Chrome, condition: str) -> None:
    deadline = time.monotonic() + 60.0
    while not driver.execute_script(condition):
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(0.1)


async def measure(bootstrap: str, *, routers: int, rate: float, seconds: float) -> dict[str, Any]:
    """Run everything, and return the figures."""
    name = f"bench-{uuid4().hex[:8]}"
    settings = load_settings(bootstrap=bootstrap, prefix=f"{name}.", app_id=name)
    await create_topics(settings)
    writer, port = Writer(settings, routers), free_ports(1)[0]
    environment = {
        **os.environ,
        "PB_BOOTSTRAP": bootstrap,
        "PB_PREFIX": settings.prefix,
        "PB_APP_ID": name,
        "PB_DASHBOARD_PORT": str(port),
    }
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        await writer.begin(producer)
        command = [sys.executable, "-m", "commands.cli", "dashboard"]
        server = await asyncio.to_thread(subprocess.Popen, command, env=environment)
        process = psutil.Process(server.pid)
        driver = await asyncio.to_thread(_browser, f"/tmp/{name}")
        try:
            await asyncio.to_thread(_ready, f"http://127.0.0.1:{port}/readyz")
            writing = asyncio.create_task(writer.keep(producer, rate=rate, seconds=seconds))
            await asyncio.sleep(3.0)
            alone = await _cpu(process, 5.0)
            began, at = sum(process.cpu_times()[:2]), time.monotonic()
            looked = await asyncio.to_thread(_look, driver, f"http://127.0.0.1:{port}/")
            watched = (sum(process.cpu_times()[:2]) - began) / (time.monotonic() - at)
            await writing
            return {
                "routers": routers,
                "events/s": rate,
                "server's CPU, nobody looks, cores": round(alone, 3),
                "server's CPU, one page scrolls and sorts, cores": round(watched, 3),
                "server's memory, MB": round(process.memory_info().rss / 2**20),
                **looked,
            }
        finally:
            driver.quit()
            server.send_signal(signal.SIGTERM)
            server.wait()


async def _cpu(process: psutil.Process, seconds: float) -> float:
    before = sum(process.cpu_times()[:2])
    await asyncio.sleep(seconds)
    return (sum(process.cpu_times()[:2]) - before) / seconds


def main() -> None:
    """Print the figures."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--routers", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=25.0)
    given = parser.parse_args()
    found = asyncio.run(
        measure(given.bootstrap, routers=given.routers, rate=given.rate, seconds=given.seconds)
    )
    for name, value in found.items():
        print(f"{name:52} {value}")


if __name__ == "__main__":
    main()
