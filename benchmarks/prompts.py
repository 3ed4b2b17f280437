"""Measure how many prompts a worker encodes and decides per second, beside the same worker on
contexts; and what it weighs.

uv run python -m benchmarks.prompts [--quick]

Each side drains a backlog of the same length over 64 routers, state durable, in turns. The prompts
are the benchmark's, each with a number at its end, so that none comes twice.
"""

from __future__ import annotations

import asyncio
import statistics
import uuid

import orjson

from benchmarks.data import load_rows
from benchmarks.report import command, print_figures, print_table
from benchmarks.streaming import (
    PARTITIONS,
    ROUTERS,
    Drained,
    Events,
    declarations,
    measure,
    process,
    produce,
    requests,
    stamps,
    worker_environment,
)
from commands.broker.choose import choose_broker
from streams.log.service_topics import create_topics
from streams.settings import load_settings


def prompts(count: int) -> Events:
    """Return (key, value) of so many requests with prompts."""
    texts, found = load_rows("test").prompts, []
    for i in range(count):
        home = f"router-{i % ROUTERS}"
        event = {
            "router_id": home,
            "request_id": f"r{i}",
            "prompt": f"{texts[i % len(texts)]} ({i})",
        }
        found.append((home.encode(), orjson.dumps(event)))
    return found


async def drain(bootstrap: str, events: Events) -> Drained:
    """Let a worker with the default encoder decide a backlog."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    settings = load_settings(
        bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=PARTITIONS
    )
    await create_topics(settings)
    await produce(bootstrap, settings.topic("routers"), declarations(ROUTERS))
    await produce(bootstrap, settings.topic("requests"), events)
    with process(
        ["-m", "commands.cli", "worker"],
        worker_environment(settings) | {"PB_ENCODER_BACKEND": "static"},
    ) as child:
        times = await stamps(bootstrap, settings.topic("routes"), len(events))
        return measure(child, 0.0, times)


async def compare(bootstrap: str, *, events: int, rounds: int) -> None:
    """Drain both in turns, and print the medians."""
    sides = {"contexts": requests(events), "prompts": prompts(events)}
    runs: dict[str, list[Drained]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, backlog in sides.items():
            runs[side].append(await drain(bootstrap, backlog))
    rates = {
        side: statistics.median(run.events_per_second for run in found)
        for side, found in runs.items()
    }
    cpu = {
        side: statistics.median(run.cpu_us_per_event for run in found)
        for side, found in runs.items()
    }
    rss = {side: max(run.rss_mb for run in found) for side, found in runs.items()}
    rows = [(side, rates[side], cpu[side], rss[side]) for side in sides]
    print_table(
        f"A worker, {events:,} requests", ["", "decisions/s", "CPU µs/decision", "RSS MB"], rows
    )
    print_figures(
        "prompts", {"rate_ratio": rates["prompts"] / rates["contexts"], "rss_mb": rss["prompts"]}
    )


def run(quick: bool) -> None:
    """Measure prompts beside contexts on a broker of its own."""
    with choose_broker() as broker:
        asyncio.run(
            compare(broker.bootstrap, events=3000 if quick else 20_000, rounds=1 if quick else 3)
        )


if __name__ == "__main__":
    command(run)()
