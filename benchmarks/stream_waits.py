"""Measure what a request waits for at 200 requests, 200 bills and 200 rewards a second: its way to
the worker, the core, the changelog, the answer.

    uv run python -m benchmarks.stream_waits [--quick]

A worker on a real broker, which notes when each group passes from one step to the next. A group's
times count once for each of its events. What is before a group counts from the record's timestamp:
its way to the broker, the fetch, and its wait for room.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from agents.group import Group
from benchmarks.report import command, print_figures, print_table
from benchmarks.stream_sides import Bench, cpu_seconds
from benchmarks.streaming import ROUTERS, bills_and_rewards
from commands.broker.choose import choose_broker

STEPS = ("before the group", "decode", "decide", "commit", "publish")
KINDS = ("requests", "costs", "rewards")
PER_SECOND = 200.0
OUT = "PB_BENCH_WAITS"
"""Names the file that the worker writes; the command takes it out of the environment."""

Batch = tuple[float, str, int, dict[str, float]]
"""Time at which it was done, its topic, its events, and the seconds of each step."""


class Notes:
    """The times of each group at each of its steps."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._batches: list[Batch] = []
        self._written = 0.0

    def note(self, group: Group) -> None:
        """Note a group that is finished; now and then all of them are written."""
        now = time.time_ns()
        for batch in group.batches:
            sent = float(np.mean([record.timestamp for record in batch.messages])) * 1e6
            passed = [("before the group", sent), *batch.passed, *group.passed, ("", now)]
            spent: dict[str, float] = defaultdict(float)
            for (step, start), (_, end) in pairwise(passed):
                spent[step] += (end - start) / 1e9
            self._batches.append((now / 1e9, batch.name, len(batch.messages), spent))
        if time.monotonic() > self._written + 0.5:
            self._written = time.monotonic()
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(self._batches), encoding="utf-8")
            part.replace(self._path)


def noting(notes: Notes) -> None:
    """Let a worker tell what it finishes."""
    from streams.service.metrics import Metrics

    finished = Metrics.group

    def noted(self: Metrics, group: Group) -> None:
        notes.note(group)
        finished(self, group)

    Metrics.group = noted  # type: ignore[method-assign]


async def measure(bootstrap: str, seconds: float, out: Path) -> dict[str, dict[str, float]]:
    """Return by topic what its events waited for, in ms, and how many came at once."""
    bench = Bench(bootstrap, ROUTERS)
    await bench.create()
    count = int(PER_SECOND * seconds)
    first = bench.more(count)
    await bench.send("requests", first)
    program = ["-m", "benchmarks.stream_waits", "worker"]
    with bench.worker(program, {OUT: str(out)}) as (child, _):
        await bench.decided()
        cpu = cpu_seconds(child)
        begins, before = time.time(), bench.asked
        bills, rewards = bills_and_rewards(first)
        await asyncio.gather(
            bench.send("requests", bench.more(count), per_second=PER_SECOND),
            bench.send("costs", bills, per_second=PER_SECOND),
            bench.send("rewards", rewards, per_second=PER_SECOND),
        )
        decided, asked = await bench.decided(), await bench.asked_at()
        await bench.settled(count)
        cpu = cpu_seconds(child) - cpu
    waits = [decided[f"r{i}"] - asked[f"r{i}"] for i in range(before, bench.asked)]
    found = [batch for batch in _read(out) if batch[0] > begins]
    return {kind: _mean(kind, found) for kind in KINDS} | {
        "decision": {f"p{part}": float(np.percentile(waits, part)) for part in (50, 90, 99)},
        "worker": {"CPU µs an event": 1e6 * cpu / 3 / count},
    }


def _read(out: Path) -> list[Batch]:
    """Return the batches that the worker has written so far."""
    found: list[Batch] = []
    if out.exists():
        found = json.loads(out.read_text(encoding="utf-8"))
    return found


def _mean(kind: str, batches: list[Batch]) -> dict[str, float]:
    own = [(events, spent) for _, topic, events, spent in batches if topic == kind]
    total = sum(events for events, _ in own)
    waited = {
        step: 1000 * sum(events * spent.get(step, 0.0) for events, spent in own) / total
        for step in STEPS
    }
    return waited | {"all of it": sum(waited.values()), "events at once": total / len(own)}


def run(quick: bool) -> None:
    """Print the table, ms an event."""
    with choose_broker() as broker, TemporaryDirectory() as folder:
        seconds = 5.0 if quick else 20.0
        found = asyncio.run(measure(broker.bootstrap, seconds, Path(folder) / "waits.json"))
    rows: list[list[str | float]] = [
        [step, *(found[kind][step] for kind in KINDS)]
        for step in (*STEPS, "all of it", "events at once")
    ]
    title = f"ms an event waits, 3 x {PER_SECOND:.0f} a second, {ROUTERS} routers"
    print_table(title, ["step", *KINDS], rows)
    waits = found["decision"] | found["worker"]
    print("A request waits, ms:", *(f"{name} {value:.1f}" for name, value in waits.items()))
    figures = {f"{kind}, {step}": found[kind][step] for kind in KINDS for step in STEPS}
    print_figures("stream_waits", {**figures, **waits})


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        noting(Notes(Path(os.environ.pop(OUT))))
        from commands.cli import main

        main(["worker"], prog_name="pbstream")
    else:
        command(run)()
