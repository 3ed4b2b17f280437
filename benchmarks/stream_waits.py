"""Measure what a request waits for at 200 requests, 200 bills and 200 rewards a second, and at half
of the largest rate: its way to the worker, the core, the changelog, the answer.

    uv run python -m benchmarks.stream_waits [--quick]

A worker on a real broker, which notes when each group passes from one step to the next. A group's
times count once for each of its events. The fetch counts from the record's timestamp until the
record is in its inbox, the inbox until its group. The second table has requests alone, and beside
the mean what the hundredth part waited for that waited longest, with the worker's longest garbage
collection meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from faust.types import TP

from agents.group import Group
from benchmarks.report import command, print_figures, print_table
from benchmarks.stream_sides import Bench, cpu_seconds
from benchmarks.streaming import ROUTERS, WARM, bills_and_rewards
from commands.broker.choose import choose_broker
from ground.messages import Record

STEPS = ("fetch", "inbox", "decode", "decide", "commit", "publish")
KINDS = ("requests", "costs", "rewards")
PER_SECOND = 200.0
BACKLOG = 10_000
"""Requests whose rate is the largest, as in `benchmarks.stream`."""
GARBAGE = "longest garbage collection"
OUT = "PB_BENCH_WAITS"
"""Names the file that the worker writes; the command takes it out of the environment."""

Found = dict[str, dict[str, float]]
Batch = tuple[float, str, list[float], dict[str, float]]
"""Time at which it was done, its topic, the seconds from each record's timestamp until it was in
its inbox, and the seconds of each step from then on."""


class Notes:
    """The times of each group at each of its steps, a line of the file each."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._came: dict[tuple[str, int, int], float] = {}
        self._began = 0.0

    def came(self, tp: TP, records: Sequence[Record]) -> None:
        """Note that records are in their inbox."""
        now = time.time()
        self._came |= {(*tp, record.offset): now for record in records}

    def note(self, group: Group) -> None:
        """Note a group that is finished."""
        now = time.time_ns()
        for batch in group.batches:
            at = [self._came.pop((m.topic, m.partition, m.offset)) for m in batch.messages]
            sent = [(m.timestamp or 0) / 1000 for m in batch.messages]
            passed = [("inbox", float(np.mean(at)) * 1e9), *batch.passed, *group.passed, ("", now)]
            spent: dict[str, float] = defaultdict(float)
            for (step, start), (_, end) in pairwise(passed):
                spent[step] += (end - start) / 1e9
            fetch = [there - start for start, there in zip(sent, at, strict=True)]
            self._write((now / 1e9, batch.name, fetch, spent))

    def collected(self, phase: str, info: dict[str, int]) -> None:
        """Note a garbage collection."""
        now = time.time()
        if phase == "start":
            self._began = now
        else:
            self._write((now, GARBAGE, [now - self._began], {}))

    def _write(self, batch: Batch) -> None:
        self._file.write(json.dumps(batch) + "\n")


def noting(notes: Notes) -> None:
    """Let a worker log the events that it fetches and finishes."""
    from streams.faust.sources import Sources
    from streams.service.worker_metrics import Metrics

    finished, deliver = Metrics.group, Sources.deliver

    def noted(self: Metrics, group: Group) -> None:
        notes.note(group)
        finished(self, group)

    def delivered(self: Sources, tp: TP, records: Sequence[Record]) -> None:
        notes.came(tp, records)
        deliver(self, tp, records)

    Metrics.group = noted  # type: ignore[method-assign]
    Sources.deliver = delivered  # type: ignore[method-assign]
    gc.callbacks.append(notes.collected)


async def measure(bootstrap: str, seconds: float, out: Path) -> Found:
    """Return by topic what its events waited for, in ms, and how many came at once."""
    bench = Bench(bootstrap, ROUTERS)
    await bench.create()
    count = int(PER_SECOND * seconds)
    first = bench.more(BACKLOG)
    await bench.send("requests", first)
    program = ["-m", "benchmarks.stream_waits", "worker"]
    with bench.worker(program, {OUT: str(out)}) as (child, _):
        times = await bench.decided()
        rate = 500 * (len(times) - 1) / (max(times.values()) - min(times.values()))
        cpu = cpu_seconds(child)
        begins, before = time.time(), bench.asked
        bills, rewards = bills_and_rewards(first[:count])
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
        begins = time.time() + WARM
        many = bench.more(int(rate * (WARM + seconds)))
        await bench.send("requests", many, per_second=rate)
        await bench.decided()
    busy = [batch for batch in _read(out) if batch[0] > begins]
    return {kind: _mean(kind, found) for kind in KINDS} | {
        "decision": {f"p{part}": float(np.percentile(waits, part)) for part in (50, 90, 99)},
        "worker": {"CPU µs an event": 1e6 * cpu / 3 / count},
        "half": _mean("requests", busy) | {"a second": rate},
        "worst": _worst(busy),
    }


def _read(out: Path) -> list[Batch]:
    """Return the batches that the worker has written so far."""
    lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _mean(kind: str, batches: list[Batch]) -> dict[str, float]:
    own = [(fetch, spent) for _, topic, fetch, spent in batches if topic == kind]
    total = sum(len(fetch) for fetch, _ in own)
    waited = {
        step: 1000 * sum(len(fetch) * spent.get(step, 0.0) for fetch, spent in own) / total
        for step in STEPS
    }
    waited["fetch"] = 1000 * sum(sum(fetch) for fetch, _ in own) / total
    return waited | {"all of it": sum(waited.values()), "events at once": total / len(own)}


def _worst(batches: list[Batch]) -> dict[str, float]:
    """Return the steps of the slowest hundredth of the requests, in ms."""
    each = [
        (fetch + sum(spent.values()), fetch, done, spent)
        for done, topic, fetches, spent in batches
        if topic == "requests"
        for fetch in fetches
    ]
    each.sort(key=lambda one: one[0])
    worst = each[-max(len(each) // 100, 1) :]
    waited = {
        step: 1000 * float(np.mean([spent.get(step, 0.0) for *_, spent in worst])) for step in STEPS
    }
    waited["fetch"] = 1000 * float(np.mean([fetch for _, fetch, *_ in worst]))
    held = [
        took
        for at, topic, (took, *_), _ in batches
        if topic == GARBAGE and any(done - whole < at < done for whole, _, done, _ in worst)
    ]
    return waited | {"all of it": sum(waited.values()), GARBAGE: 1000 * max(held, default=0.0)}


def run(quick: bool) -> None:
    """Print the tables, ms an event."""
    with choose_broker() as broker, TemporaryDirectory() as folder:
        seconds = 5.0 if quick else 20.0
        found = asyncio.run(measure(broker.bootstrap, seconds, Path(folder) / "waits.json"))
    rows: list[list[str | float]] = [
        [step, *(found[kind][step] for kind in KINDS)]
        for step in (*STEPS, "all of it", "events at once")
    ]
    title = f"ms an event waits, 3 x {PER_SECOND:.0f} a second, {ROUTERS} routers"
    print_table(title, ["step", *KINDS], rows)
    rows = [[step, found["half"][step], found["worst"][step]] for step in (*STEPS, "all of it")]
    rows.append([GARBAGE, "", found["worst"][GARBAGE]])
    title = f"ms a request waits, {found['half']['a second']:.0f} a second"
    print_table(title, ["step", "all", "worst hundredth"], rows)
    waits = found["decision"] | found["worker"]
    print("A request waits, ms:", *(f"{name} {value:.1f}" for name, value in waits.items()))
    kinds = (*KINDS, "half", "worst")
    figures = {f"{kind}, {step}": found[kind][step] for kind in kinds for step in STEPS}
    print_figures("stream_waits", {**figures, **waits})


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        noting(Notes(Path(os.environ.pop(OUT))))
        from commands.cli import main

        main(["worker"], prog_name="pbstream")
    else:
        command(run)()
