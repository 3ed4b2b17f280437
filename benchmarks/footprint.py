"""Measure what a worker costs and holds: CPU per event from one router to many, memory with and
without the encoder.

    uv run python -m benchmarks.footprint [--quick]

CPU counts from when every router has made its first decision. A router without traffic, and one
request in flight, cost what the memory grows by between two measurements. On Linux; elsewhere `rss`
means what the system says it means.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass

import orjson
import psutil

from benchmarks.data import load_rows
from benchmarks.report import command, print_figures, print_table
from benchmarks.streaming import (
    PARTITIONS,
    declarations,
    process,
    produce,
    requests,
    stamps,
    worker_environment,
)
from commands.broker.choose import choose_broker
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Footprint:
    """One worker: CPU per event in microseconds, resident megabytes after the first decisions and
    after all.
    """

    cpu_us: float
    rss_before_mb: float
    rss_after_mb: float


async def service(bootstrap: str) -> Settings:
    """Create the topics of a service of its own."""
    name = f"foot-{uuid.uuid4().hex[:8]}"
    settings = load_settings(
        bootstrap=bootstrap, prefix=f"{name}.", app_id=name, partitions=PARTITIONS
    )
    await create_topics(settings)
    return settings


async def serve_routers(bootstrap: str, routers: int, *, events: int) -> Footprint:
    """Let a worker of so many routers decide; no bill comes, so every request stays in flight."""
    settings = await service(bootstrap)
    first = requests(max(routers, 1000), routers=routers)
    with process(["-m", "commands.cli", "worker"], worker_environment(settings)) as child:
        await produce(bootstrap, settings.topic("routers"), declarations(routers))
        await produce(bootstrap, settings.topic("requests"), first)
        await stamps(bootstrap, settings.topic("routes"), len(first))
        cpu, rss = sum(child.cpu_times()[:2]), child.memory_info().rss
        await produce(
            bootstrap,
            settings.topic("requests"),
            requests(events, routers=routers, start=len(first)),
        )
        await stamps(bootstrap, settings.topic("routes"), len(first) + events)
        return Footprint(
            (sum(child.cpu_times()[:2]) - cpu) / events * 1e6,
            rss / 1e6,
            child.memory_info().rss / 1e6,
        )


async def serve_prompts(bootstrap: str, *, prompts: int) -> float:
    """Return the resident megabytes of a worker that has encoded some benchmark prompts itself."""
    settings = await service(bootstrap)
    texts = load_rows("test", limit=prompts).prompts
    home = "router-0"
    events = [
        (home.encode(), orjson.dumps({"router_id": home, "request_id": f"r{i}", "prompt": text}))
        for i, text in enumerate(texts)
    ]
    encoding = worker_environment(settings) | {"PB_ENCODER_BACKEND": "static"}
    with process(["-m", "commands.cli", "worker"], encoding) as child:
        await produce(bootstrap, settings.topic("routers"), declarations(1))
        await produce(bootstrap, settings.topic("requests"), events)
        await stamps(bootstrap, settings.topic("routes"), len(events))
        return float(psutil.Process(child.pid).memory_info().rss / 1e6)


async def compare(bootstrap: str, counts: list[int], *, events: int, prompts: int) -> None:
    """Run a worker for each number of routers, and one with the encoder, and print what they
    cost.
    """
    found = {count: await serve_routers(bootstrap, count, events=events) for count in counts}
    encoder = await serve_prompts(bootstrap, prompts=prompts)
    few, many = counts[0], counts[-1]
    in_flight = (found[few].rss_after_mb - found[few].rss_before_mb) / events * 1e3
    idle = (found[many].rss_before_mb - found[few].rss_before_mb) / (many - few) * 1e3
    rows: list[list[str | float]] = [
        [f"{n:,}", found[n].cpu_us, found[n].rss_before_mb, found[n].rss_after_mb] for n in counts
    ]
    print_table(
        f"Routers on one worker, {events:,} events",
        ["routers", "CPU µs/event", "RSS MB before", "RSS MB after"],
        rows,
    )
    figures = {
        "many_routers_ratio": found[many].cpu_us / found[few].cpu_us,
        "rss_mb": found[few].rss_before_mb,
        "rss_encoder_mb": encoder,
        "kb_per_router": idle,
        "kb_per_request_in_flight": in_flight,
    }
    print_figures("footprint", figures)


def run(quick: bool) -> None:
    """Measure a worker with 1 to 10,000 routers, and one with the encoder, on a broker of their
    own.
    """
    with choose_broker() as broker:
        counts, events, prompts = (
            ([1, 64, 500], 3000, 100) if quick else ([1, 64, 1000, 10_000], 20_000, 500)
        )
        asyncio.run(compare(broker.bootstrap, counts, events=events, prompts=prompts))


if __name__ == "__main__":
    command(run)()
