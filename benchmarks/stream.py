"""Measure how many events a worker takes per second, state durable, beside what only copies them;
what an event costs, how long a decision takes, and what many routers weigh.

    uv run python -m benchmarks.stream [--quick]

It takes two minutes with `--quick`, else some eight, on an idle machine, and says what it is at.

All sides drain a backlog from the same broker, one after the other, in turns. A rate counts from
the first answer to the last, as the broker has stamped them; a worker's bills and rewards count
until `pb.lambda` has them all. Contexts are given, 26 numbers; three models, a budget. CPU is the
process's own from when every router has made its first decision; `steady`: each router's bill and
reward come before its next request, elsewhere all requests come first. A latency is from the
request's record, as its sender has stamped it, to when the broker has the decision; the first two
seconds at a rate do not count, on no side.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
import psutil

from benchmarks.report import command, print_figures, print_table
from benchmarks.stream_ages import ages
from benchmarks.stream_answers import beside_a_backlog, calls, latencies
from benchmarks.stream_ordinary import beside_aiokafka, calm_share
from benchmarks.stream_sides import (
    ECHO,
    RAW,
    Bench,
    broker_processes,
    copy_at,
    cpu_seconds,
    drain_copy,
)
from benchmarks.stream_steady import steady
from benchmarks.streaming import ROUTERS, Events, bills_and_rewards, requests
from commands.broker.choose import choose_broker

FLOORS = {
    "requests ÷ Faust echo": (5.0, 8.0),
    "requests, bills, rewards ÷ Faust echo": (8.0, 12.0),
    "requests ÷ raw aiokafka": (0.6, 0.8),
    "CPU µs an event, 1 router": (-80.0, -50.0),
    "CPU µs an event, 64 routers": (-90.0, -55.0),
    "CPU µs an event, 1000 routers": (-110.0, -65.0),
    "CPU µs an event, 10000 routers": (-130.0, -80.0),
    "CPU µs an event, steady, 64 routers": (-110.0, -70.0),
    "CPU µs an event, steady, 1000 routers": (-150.0, -90.0),
    "CPU µs an event, steady, 10000 routers": (-190.0, -110.0),
    "CPU ÷ aiokafka's at 200 + 200 + 200 a second": (-2.0, -1.3),
    "% of a core at 20 + 20 + 20 a second, 64 routers": (-8.0, -4.0),
    "p50 ms at 200 + 200 + 200 a second": (-12.0, -8.0),
    "p50 ÷ aiokafka's, in and out": (-4.0, -3.0),
    "p99 ÷ aiokafka's, in and out": (-4.0, -3.0),
    "p50 ÷ aiokafka's, in and out, beside a busy core": (-8.0, -4.0),
    "p99 ÷ aiokafka's, in and out, beside a busy core": (-8.0, -4.0),
    "p99 ms at 200 + 200 + 200 a second": (-45.0, -25.0),
    "p50 ms at half of the largest rate": (-20.0, -12.0),
    "p99 ms at half of the largest rate": (-70.0, -40.0),
    "p50 ms of route(), 100 callers, 200 a second": (-10.0, -7.0),
    "p99 ms of route(), 100 callers, 200 a second": (-30.0, -15.0),
    "p99 ms of a request beside a backlog of bills": (-150.0, -60.0),
    "p99 ms of a bill in a closed loop": (-2000.0, -1000.0),
    "p99 ms of a bill at 1.5 × what a worker can do": (-2000.0, -1000.0),
    "seconds from start to ready, 10000 routers": (-4.0, -3.0),
    "MB with 10000 routers": (-450.0, -300.0),
}
"""Figures with their floor and goal; those of which less is better have a minus."""


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of everything."""

    backlog: int
    rounds: int
    events: int
    seconds: float
    bills: int
    saturated: float


QUICK = Size(backlog=10_000, rounds=1, events=2_000, seconds=5.0, bills=100_000, saturated=10.0)
FULL = Size(backlog=10_000, rounds=3, events=10_000, seconds=10.0, bills=100_000, saturated=30.0)


async def cost(bootstrap: str, routers: int, events: int) -> dict[str, float]:
    """Return the CPU time of an event and the memory of so many routers, also after a start."""
    say(f"{routers} routers, {events} events of each kind")
    bench = Bench(bootstrap, routers)
    await bench.create()
    with bench.worker() as (child, _):
        await bench.in_force()
        asked = bench.more(max(routers, 500))
        await bench.send("requests", asked)
        await bench.decided()
        clocks = _clocks(child)
        asked = bench.more(events)
        await bench.send("requests", asked)
        await bench.decided()
        after_requests = _clocks(child)
        await _feed_back(bench, asked)
        await bench.settled(events)
        after_all = _clocks(child)
        rss = child.memory_info().rss / 1e6
    worker, broker = (1e6 * (b - a) / 3 / events for a, b in zip(clocks, after_all, strict=True))
    found = {
        f"CPU µs an event, {routers} routers".replace(" 1 routers", " 1 router"): worker,
        f"CPU µs a request, {routers}": 1e6 * (after_requests[0] - clocks[0]) / events,
        f"CPU µs a bill or reward, {routers}": 1e6
        * (after_all[0] - after_requests[0])
        / 2
        / events,
        f"MB with {routers} routers": rss,
    }
    if broker_processes():
        found[f"CPU µs an event, broker, {routers}"] = broker
    if routers >= 1000:
        with bench.worker() as (_, seconds):
            found[f"seconds from start to ready, {routers} routers"] = seconds
    return found


async def _feed_back(bench: Bench, asked: Events) -> None:
    bills, rewards = bills_and_rewards(asked)
    await asyncio.gather(bench.send("costs", bills), bench.send("rewards", rewards))


def _clocks(child: psutil.Process) -> tuple[float, float]:
    """Return the CPU seconds of a worker, and of the brokers that were started here: one in a
    container is out of sight.
    """
    return cpu_seconds(child), sum(map(cpu_seconds, broker_processes()))


async def drain(bootstrap: str, size: Size) -> dict[str, float]:
    """Return the rates of a worker that has a backlog, and its latencies beside one and at half of
    the largest rate.
    """
    say("a backlog of requests")
    bench = Bench(bootstrap, ROUTERS)
    await bench.create()
    first = bench.more(size.backlog)
    await bench.send("requests", first)
    with bench.worker():
        times = await bench.decided()
    alone = 1000 * (len(times) - 1) / (max(times.values()) - min(times.values()))
    say(f"a backlog of all three, after {alone:.0f} requests a second")
    await bench.send("requests", bench.more(size.backlog))
    await _feed_back(bench, first)
    with bench.worker():
        decided, settled = await bench.decided(), await bench.settled(size.backlog)
        began = min(decided[f"r{i}"] for i in range(size.backlog, 2 * size.backlog))
        all_three = 3000 * size.backlog / (max(*decided.values(), settled) - began)
    say(f"a backlog of {size.bills} bills")
    beside = await beside_a_backlog(bench, first, size.bills)
    say("half of the largest rate")  # last: its requests have no bills, and all are remembered
    with bench.worker():
        half = await latencies(bench, alone / 2, size.seconds, feedback=None)
    say("route()")
    routed = await calls(bootstrap, 200.0, size.seconds)
    copied = await copy_at(bootstrap, rate=alone / 2, seconds=size.seconds)
    found = {"requests a second": alone, "requests, bills, rewards a second": all_three}
    for part in (50, 99):
        found[f"p{part} ms of aiokafka alone at half of that rate"] = float(
            np.percentile(copied.waits, part)
        )
        found[f"p{part} ms at half of the largest rate"] = float(np.percentile(half, part))
    for part in (50, 99):
        found[f"p{part} ms of route(), 100 callers, 200 a second"] = float(
            np.percentile(routed, part)
        )
        found[f"p{part} ms of a request beside a backlog of bills"] = float(
            np.percentile(beside, part)
        )
    return found


async def compare(bootstrap: str, size: Size) -> dict[str, float]:
    """Run all sides in turns, and return the medians."""
    rounds: list[dict[str, float]] = []
    for number in range(size.rounds):
        say(f"round {number + 1} of {size.rounds}: echo, raw aiokafka")
        backlog = requests(size.backlog)
        echo, raw = [await drain_copy(bootstrap, side, backlog) for side in (ECHO, RAW)]
        found = await drain(bootstrap, size)
        say("ordinary traffic, and beside a busy core")
        found |= await beside_aiokafka(bootstrap, size.seconds)
        alone, all_three = found["requests a second"], found["requests, bills, rewards a second"]
        found |= {"Faust echo, events a second": echo.events_per_second}
        found |= {"raw aiokafka, events a second": raw.events_per_second}
        found |= {"requests ÷ Faust echo": alone / echo.events_per_second}
        found |= {"requests, bills, rewards ÷ Faust echo": all_three / echo.events_per_second}
        found |= {"requests ÷ raw aiokafka": alone / raw.events_per_second}
        rounds.append(found)
    say(f"more than a worker can do, {size.saturated:g} s each")
    rounds[0] |= await ages(bootstrap, size.saturated)
    # CPU is no rate: once is enough.
    say("little to do")
    rounds[0] |= await calm_share(bootstrap, size.seconds)
    for routers in (1, 64, 1_000, 10_000):
        rounds[0] |= await cost(bootstrap, routers, size.events)
        if routers > 1:
            say(f"{routers} routers, steady traffic")
            taken = await steady(bootstrap, routers, size.events)
            rounds[0][f"CPU µs an event, steady, {routers} routers"] = taken
    return {
        name: statistics.median(one[name] for one in rounds if name in one) for name in rounds[0]
    }


def say(what: str) -> None:
    """Say what runs now, beside the results."""
    print(f"{time.strftime('%X')}  {what}", file=sys.stderr, flush=True)


def pin(processes: list[psutil.Process]) -> None:
    """Have processes on the first core, all threads of them: Linux sets the core of a thread."""
    for process in processes:
        for thread in process.threads():
            os.sched_setaffinity(thread.id, {0})


def run(quick: bool) -> None:
    """Measure a worker (contexts given, state durable) beside a bare Faust echo agent and raw
    aiokafka on the same broker.
    """
    size = QUICK if quick else FULL
    with choose_broker() as broker:
        found = asyncio.run(compare(broker.bootstrap, size))
        if not quick and (brokers := broker_processes()):
            pin(brokers)
            pinned = asyncio.run(drain(broker.bootstrap, size))
            found["requests a second, broker on one core"] = pinned["requests a second"]
    rows: list[list[str | float]] = []
    for name, value in found.items():
        floor, goal = FLOORS.get(name, (0.0, 0.0))
        verdict = "" if not floor else "yes" if value * np.sign(floor) >= floor else "no"
        bounds = [abs(floor), abs(goal)] if floor else ["", ""]
        rows.append([name, value, *bounds, verdict])
    print_table(
        f"{size.backlog} events a backlog, {size.rounds} rounds",
        ["what", "measured", "floor", "goal", "reached"],
        rows,
    )
    print_figures("stream", found)


if __name__ == "__main__":
    command(run)()
