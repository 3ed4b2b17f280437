"""Measure where a worker's microseconds go: one worker in memory, its stages timed apart.

    uv run python -m benchmarks.profile_agents [--routers 64] [--rounds 20] [--apart]
    uvx py-spy record --format flamegraph --output flame.svg -- \\
        .venv/bin/python -m benchmarks.profile_agents --untimed

Sources, agents, table and record batches are a worker's own; there is no broker, no fetching and no
other thread. Times are the thread's CPU. Timing the stages takes time itself: the last row is from
rounds without it.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from aiokafka.producer.message_accumulator import BatchBuilder

from agents.publishing import publish
from agents.requests import book_feedback, route_requests
from agents.table.recovered import Recovered
from benchmarks.in_memory import InMemory
from benchmarks.report import print_figures, print_table
from benchmarks.streaming import bills_and_rewards, declarations, requests
from router_state.engine import Engine
from streams.service.collecting import little_by_little
from streams.service.worker_metrics import Metrics
from streams.settings import load_settings

STAGES: tuple[tuple[str, Any, str], ...] = (
    ("decode", route_requests, "take_in"),
    ("decode", book_feedback, "take_in"),
    ("apply: the core", Engine, "apply"),
    ("persist: pack", Recovered, "write"),
    ("persist, publish: record batches", BatchBuilder, "append"),
    ("persist, publish: record batches", BatchBuilder, "close"),
    ("publish: the decision as JSON", route_requests, "route_value"),
    ("publish: pb.lambda", publish, "_update"),
    ("metrics", Metrics, "group"),
)
"""Functions that are timed, by stage; what one of them calls of another counts there only."""
REST = "the rest: lock, ack, lists, the event loop"
KINDS = ("requests", "costs", "rewards")
WARM = 3
"""Rounds until caches are warm and batches have grown."""


class Stopwatch:
    """Clock of the stages, each without those that it calls.

    Attributes:
        seconds: taken by each stage.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is timed."""

        def measured(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            began = time.thread_time()
            try:
                return call(*args, **kwargs)
            finally:
                took = time.thread_time() - began
                self.seconds[stage] += took - self._inner.pop()
                self._inner[-1] += took

        return measured

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the stages until the end."""
        before = [(owner, name, getattr(owner, name)) for _, owner, name in STAGES]
        for stage, owner, name in STAGES:
            setattr(owner, name, self.timed(stage, getattr(owner, name)))
        try:
            yield
        finally:
            for owner, name, call in before:
                setattr(owner, name, call)


async def profile(
    routers: int, rounds: int, size: int, *, timed: bool, apart: bool
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return microseconds an event by topic and stage, and without the stages."""
    settings = load_settings(
        prefix="profile.", app_id="profile", encoder_backend="none", bootstrap="127.0.0.1:1"
    )
    worker = InMemory(settings)
    await worker.start()
    await worker.take(worker.fetched("routers", declarations(routers), at=time.time()))
    stages: dict[str, dict[str, float]] = {}
    alone: dict[str, list[float]] = defaultdict(list)
    watches = {name: Stopwatch() for name in KINDS}
    totals: dict[str, float] = defaultdict(float)
    turns = [(number, name) for number in range(WARM + 2 * rounds) for name in KINDS]
    if apart:
        turns.sort(key=lambda turn: KINDS.index(turn[1]))
    for number, name in turns:
        asked = requests(size, routers=routers, start=number * size)
        events = (asked, *bills_and_rewards(asked))[KINDS.index(name)]
        fetched = worker.fetched(name, events, at=time.time())
        began = time.thread_time()
        if timed and number >= WARM and number % 2:
            with watches[name].running():
                await worker.take(fetched)
            totals[name] += time.thread_time() - began
        else:
            await worker.take(fetched)
            if number >= WARM:
                alone[name].append(1e6 * (time.thread_time() - began) / size)
    await worker.stop()
    for name, watch in watches.items():
        measured = {stage: 1e6 * taken / rounds / size for stage, taken in watch.seconds.items()}
        rest = 1e6 * totals[name] / rounds / size - sum(measured.values())
        stages[name] = measured | {REST: rest}
    return stages, {name: statistics.median(found) for name, found in alone.items()}


@click.command(help=__doc__)
@click.option("--routers", default=64)
@click.option("--rounds", default=20, help="Rounds of each kind.")
@click.option("--size", default=1_000, help="Requests, bills and rewards in a round.")
@click.option(
    "--apart", is_flag=True, help="All requests before all bills and rewards: no estimates."
)
@click.option("--untimed", is_flag=True, help="For another profiler: no stages.")
def program(routers: int, rounds: int, size: int, apart: bool, untimed: bool) -> None:
    """Print the table."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with little_by_little():
        stages, alone = asyncio.run(profile(routers, rounds, size, timed=not untimed, apart=apart))
    names = [*dict.fromkeys(stage for stage, *_ in STAGES), REST]
    rows: list[list[str | float]] = [
        [stage, *(stages[name].get(stage, 0.0) for name in stages)] for stage in names
    ]
    rows.append(["all of it, stages timed", *(sum(found.values()) for found in stages.values())])
    rows.append(["all of it, untimed (median)", *(alone[name] for name in stages)])
    print_table(f"Microseconds an event, {routers} routers", ["stage", *stages], rows)
    print_figures("profile_agents", {f"{name}_us": value for name, value in alone.items()})


if __name__ == "__main__":
    program()
