"""Three workers on one machine beside one: what an event costs, and how many come through.

    uv run python -m benchmarks.stream_crew [--quick]

The same requests, then a bill and a reward of each, to one worker and to `pbstream worker
--processes 3`, in turns on one broker; 64 routers on 8 partitions, contexts given. CPU is that of
all processes of a service, its supervisor's too. Three workers are faster than one where the
machine has cores for them beside the broker and this program: on two cores read the CPU.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time

import psutil

from benchmarks.report import command, print_figures, print_table
from benchmarks.stream_sides import WORKER, Bench, cpu_seconds
from benchmarks.streaming import ROUTERS, bills_and_rewards
from commands.broker.choose import choose_broker

CREWS = (1, 3)
WARM = 10
"""Requests of a router before anything is measured: its first decisions cost more."""


async def one(bootstrap: str, processes: int, events: int) -> dict[str, float]:
    """Return what one service of so many processes needs for so many requests, bills and
    rewards.
    """
    bench = Bench(bootstrap, ROUTERS)
    await bench.create()
    program = WORKER if processes == 1 else (*WORKER, "--processes", str(processes))
    with bench.worker(program) as (child, _):
        await bench.in_force()
        await bench.send("requests", bench.more(WARM * ROUTERS))
        await bench.decided()
        before, began = _cpu(child), time.monotonic()
        asked = bench.more(events)
        await bench.send("requests", asked)
        times = await bench.decided()
        bills, rewards = bills_and_rewards(asked)
        await asyncio.gather(bench.send("costs", bills), bench.send("rewards", rewards))
        await bench.settled(events)
        took = time.monotonic() - began
        cpu = _cpu(child) - before
    last = sorted(times.values())[-events:]
    return {
        "requests a second": 1000 * (events - 1) / (last[-1] - last[0]),
        "events a second": 3 * events / took,
        "CPU µs an event": 1e6 * cpu / 3 / events,
    }


def _cpu(child: psutil.Process) -> float:
    return sum(map(cpu_seconds, [child, *child.children(recursive=True)]))


async def compare(bootstrap: str, rounds: int, events: int) -> dict[int, dict[str, float]]:
    """Return the medians of each crew, in turns."""
    found: dict[int, list[dict[str, float]]] = {processes: [] for processes in CREWS}
    for _ in range(rounds):
        for processes in CREWS:
            found[processes].append(await one(bootstrap, processes, events))
    return {
        processes: {name: statistics.median(one[name] for one in runs) for name in runs[0]}
        for processes, runs in found.items()
    }


def run(quick: bool) -> None:
    """Print the table."""
    rounds, events = (1, 2_000) if quick else (3, 6_000)
    with choose_broker() as broker:
        found = asyncio.run(compare(broker.bootstrap, rounds, events))
    rows: list[list[str | float]] = [
        [name, *(found[processes][name] for processes in CREWS)] for name in found[1]
    ]
    print_table(f"{os.cpu_count()} cores", ["", *(f"processes: {n}" for n in CREWS)], rows)
    print_figures(
        "stream_crew",
        {f"{name}, {n}": value for n, one in found.items() for name, value in one.items()},
    )


if __name__ == "__main__":
    command(run)()
