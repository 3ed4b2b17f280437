"""Measure what a request waits for at 200 requests, 200 bills and 200 rewards a second: the lock,
the core, the changelog, the answer.

    uv run python -m benchmarks.stream_waits [--quick]

A worker on a real broker, whose agents note when each batch passes from one step to the next. A
batch's times count once for each of its events. What is before the lock counts from the record's
timestamp: its way to the broker, the fetch, and the wait for the batch before it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from agents.service import Service
from benchmarks.report import command, print_figures, print_table
from benchmarks.stream_sides import Bench
from benchmarks.streaming import ROUTERS, bills_and_rewards
from commands.broker.choose import choose_broker
from streams.faust.sources import Source
from streams.state.tables import States

STEPS = ("before the batch", "before the lock", "lock", "apply", "changelog", "answer")
OF_IT_CPU = "of it CPU"
"""Time of the core's step, which waits for nothing: the rest is what the machine gave to others."""
KINDS = ("requests", "costs", "rewards")
PER_SECOND = 200.0
OUT = "PB_BENCH_WAITS"
"""Names the file that the worker writes; the command takes it out of the environment."""


Batch = tuple[float, str, int, dict[str, float]]
"""A batch: when it was done, its topic, its events, and the seconds of each step."""


class Notes:
    """Moments at which each agent's batch passed from step to step; an agent is a task."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: dict[object, float] = {}
        self._cpu = 0.0
        self._spent: dict[object, dict[str, float]] = {}
        self.batches: list[Batch] = []
        self._written = 0.0

    def step(self, name: str) -> None:
        """End a step of the running task: from the last call until now it was at this one."""
        task, now = asyncio.current_task(), time.monotonic()
        if task in self._passed:
            self._spent[task][name] += now - self._passed[task]
            self._passed[task] = now
            # Between these two nothing is awaited, so no other task runs.
            if name == "lock":
                self._cpu = time.thread_time()
            elif name == "apply":
                self._spent[task][OF_IT_CPU] += time.thread_time() - self._cpu

    def begin(self, waited: float) -> None:
        """A batch is taken whose records were sent so many seconds ago on average."""
        task = asyncio.current_task()
        self._passed[task] = time.monotonic()
        self._spent[task] = dict.fromkeys((*STEPS, OF_IT_CPU), 0.0) | {STEPS[0]: waited}

    def end(self, topic: str, events: int) -> None:
        """A batch is done; now and then all of them are written."""
        task = asyncio.current_task()
        del self._passed[task]
        self.batches.append((time.time(), topic, events, self._spent.pop(task)))
        if time.monotonic() > self._written + 0.5:
            self._written = time.monotonic()
            part = self._path.with_suffix(".part")
            part.write_text(json.dumps(self.batches), encoding="utf-8")
            part.replace(self._path)


def noting(notes: Notes) -> None:
    """Put notes into the agents' way."""
    batches, writing, commit, answer = Source.batches, States.writing, States.commit, Service.answer

    async def noted_batches(self: Source) -> AsyncIterator[list[Any]]:
        async for batch in batches(self):
            now = time.time()
            notes.begin(float(np.mean([now - record.timestamp / 1000 for record in batch])))
            yield batch
            notes.end(batch[0].topic, len(batch))

    @asynccontextmanager
    async def noted_writing(self: States) -> AsyncIterator[States]:
        notes.step("before the lock")
        async with writing(self):
            notes.step("lock")
            yield self

    def noted(call: Callable[..., Awaitable[Any]], before: str, name: str) -> Any:
        async def passed(*args: Any) -> Any:
            notes.step(before)
            result = await call(*args)
            notes.step(name)
            return result

        return passed

    replaced: dict[Any, dict[str, Any]] = {
        Source: {"batches": noted_batches},
        States: {"writing": noted_writing, "commit": noted(commit, "apply", "changelog")},
        Service: {"answer": noted(answer, "changelog", "answer")},
    }
    for owner, methods in replaced.items():
        for name, method in methods.items():
            setattr(owner, name, method)


async def measure(bootstrap: str, seconds: float, out: Path) -> dict[str, dict[str, float]]:
    """Return by topic what its events waited for, in ms, and how many came at once."""
    bench = Bench(bootstrap, ROUTERS)
    await bench.create()
    count = int(PER_SECOND * seconds)
    first = bench.more(count)
    await bench.send("requests", first)
    with bench.worker(["-m", "benchmarks.stream_waits", "worker"], {OUT: str(out)}):
        await bench.decided()
        begins = time.time()
        bills, rewards = bills_and_rewards(first)
        await asyncio.gather(
            bench.send("requests", bench.more(count), per_second=PER_SECOND),
            bench.send("costs", bills, per_second=PER_SECOND),
            bench.send("rewards", rewards, per_second=PER_SECOND),
        )
        await bench.decided()
        await bench.settled(count)
        took = time.time() - begins
    found = [batch for batch in _read(out) if batch[0] > begins]
    held = sum(spent["apply"] + spent["changelog"] for *_, spent in found)
    return {kind: _mean(kind, found) for kind in KINDS} | {"all": {"lock held": held / took}}


def _read(out: Path) -> list[Batch]:
    """Return the batches that the worker has written so far."""
    found: list[Batch] = []
    if out.exists():
        found = json.loads(out.read_text(encoding="utf-8"))
    return found


def _mean(kind: str, batches: list[Batch]) -> dict[str, float]:
    own = [(events, spent) for _, topic, events, spent in batches if topic.endswith(f".{kind}")]
    total = sum(events for events, _ in own)
    waited = {
        step: 1000 * sum(events * spent[step] for events, spent in own) / total
        for step in (*STEPS, OF_IT_CPU)
    }
    whole = sum(waited[step] for step in STEPS)
    return waited | {"all of it": whole, "events a batch": total / len(own)}


def run(quick: bool) -> None:
    """Print the table, ms an event."""
    with choose_broker() as broker, TemporaryDirectory() as folder:
        seconds = 5.0 if quick else 20.0
        found = asyncio.run(measure(broker.bootstrap, seconds, Path(folder) / "waits.json"))
    rows: list[list[str | float]] = [
        [step, *(found[kind][step] for kind in KINDS)]
        for step in (*STEPS[:4], OF_IT_CPU, *STEPS[4:], "all of it", "events a batch")
    ]
    title = f"ms an event waits, 3 x {PER_SECOND:.0f} a second, {ROUTERS} routers"
    print_table(title, ["step", *KINDS], rows)
    held = found["all"]["lock held"]
    print(f"The lock is held for {held:.0%} of the time.")
    figures = {f"{kind}, {step}": found[kind][step] for kind in KINDS for step in STEPS}
    print_figures("stream_waits", {**figures, "lock held": held})


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        noting(Notes(Path(os.environ.pop(OUT))))
        from commands.cli import main

        main(["worker"], prog_name="pbstream")
    else:
        command(run)()
