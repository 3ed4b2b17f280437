"""Measure ordinary traffic: 200 requests, 200 bills and 200 rewards a second, beside aiokafka alone
at as many events a second, and a tenth of it.

A worker's CPU counts with all that it does beside events: fetches that bring nothing, timers and
heartbeats. As no machine is idle, a busy core stands beside both sides as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benchmarks.stream_answers import latencies
from benchmarks.stream_sides import Bench, copy_at, cpu_seconds
from benchmarks.streaming import ROUTERS, WARM, Events, process

RATE = 200.0
"""Requests, bills and rewards a second, each."""
CALM_RATE = 20.0
"""The same of a service that has little to do."""
ENDLESS = ("-c", "while True: pass")
"""A program that takes a core."""


@dataclass(frozen=True, slots=True)
class Ordinary:
    """A worker at a rate.

    Attributes:
        waits: milliseconds from each request to its decision.
        cpu_us: CPU an event, µs.
        share: share of a core.
    """

    waits: list[int]
    cpu_us: float
    share: float


async def beside_aiokafka(bootstrap: str, seconds: float) -> dict[str, float]:
    """Return what events cost and requests wait at `RATE`, over what they do in aiokafka alone, on
    the machine as it is and beside a busy core.
    """
    found = await _once(bootstrap, seconds, "")
    with _busy_core():
        return found | await _once(bootstrap, seconds, ", beside a busy core")


async def calm_share(bootstrap: str, seconds: float) -> dict[str, float]:
    """Return the share of a core, in percent, that a worker takes at `CALM_RATE`, and aiokafka
    alone at as many events.
    """
    events = 3 * CALM_RATE
    copied = await copy_at(bootstrap, rate=events, seconds=seconds)
    own = await _ordinary(bootstrap, CALM_RATE, seconds)
    share, rate = 100.0 * own.share, f"{CALM_RATE:.0f} + {CALM_RATE:.0f} + {CALM_RATE:.0f} a second"
    alone = 100.0 * copied.cpu_us * events / 1e6
    return {
        f"% of a core at {rate}, 64 routers": share,
        f"% of a core of aiokafka alone at {events:.0f} a second": alone,
        f"CPU ÷ aiokafka's at {rate}": own.cpu_us / copied.cpu_us,
    }


async def _once(bootstrap: str, seconds: float, where: str) -> dict[str, float]:
    copied = await copy_at(bootstrap, rate=3 * RATE, seconds=seconds)
    own = await _ordinary(bootstrap, RATE, seconds)
    way = float(np.mean(copied.waits))  # whole milliseconds, of which a median would be one
    p50, p99 = (float(np.percentile(own.waits, part)) for part in (50, 99))
    rate = f"{RATE:.0f} + {RATE:.0f} + {RATE:.0f} a second{where}"
    return {
        f"ms of aiokafka alone, in and out, {3 * RATE:.0f} a second{where}": way,
        f"CPU µs of aiokafka alone, {3 * RATE:.0f} a second{where}": copied.cpu_us,
        f"CPU µs an event at {rate}": own.cpu_us,
        f"CPU ÷ aiokafka's at {rate}": own.cpu_us / copied.cpu_us,
        f"p50 ms at {rate}": p50,
        f"p99 ms at {rate}": p99,
        f"p50 ÷ aiokafka's, in and out{where}": p50 / way,
        f"p99 ÷ aiokafka's, in and out{where}": p99 / float(np.percentile(copied.waits, 99)),
    }


async def _ordinary(bootstrap: str, rate: float, seconds: float) -> Ordinary:
    bench = Bench(bootstrap, ROUTERS)
    await bench.create()
    known: Events = bench.more(max(int(rate * (WARM + seconds)), 2 * ROUTERS))
    await bench.send("requests", known)
    with bench.worker() as (child, _):
        await bench.decided()
        began, before = time.monotonic(), cpu_seconds(child)
        waits = await latencies(bench, rate, seconds, feedback=known)
        passed, taken = time.monotonic() - began, cpu_seconds(child) - before
    return Ordinary(waits, 1e6 * taken / (3 * int(rate * (WARM + seconds))), taken / passed)


@contextmanager
def _busy_core() -> Iterator[None]:
    with process([*ENDLESS], {}):
        yield
