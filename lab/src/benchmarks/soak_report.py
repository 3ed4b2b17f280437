"""Say and draw what a soak found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.figure import entitle, figure, save_png
from benchmarks.inks import GRID, LINES
from benchmarks.report import signed
from benchmarks.soak import PARTITIONS, REMEMBERED, ROUTERS, TOLERANCE
from benchmarks.twins import shown

MEANING = {
    "memory_mb": "memory of the worker, MB",
    "redis_mb": "memory of Redis, MB",
    "p50_ms": "request to decision, p50, ms",
    "p99_ms": "request to decision, p99, ms",
    "lag": "events not committed",
}


def report(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    verdict = (
        "flat"
        if all(found["flat"].values())
        else "NOT flat: " + ", ".join(k for k, flat in found["flat"].items() if not flat)
    )
    lines = [
        "# Soak: memory, latency and lag over time",
        "",
        f"{found['minutes']:g} minutes, {found['rate']:.0f} requests/s with their bills and "
        "labels: half of the "
        f"{found['sustainable']:.0f} requests/s with which a backlog is worked off, on "
        f"{found['cores']} cores ({found['system']}) "
        f"that the load, one Kafka broker, Redis and one worker share. {ROUTERS} routers, "
        f"{PARTITIONS} partitions, "
        f"{found['requests']:,} requests; 5 % of events malformed, 5 % twice, 5 % out of order, "
        "1 % missing. A request is known "
        f"for {REMEMBERED:.0f} s, and each router keeps its last contexts, so that memory is "
        "full after the warm-up of "
        f"{found['warm_up']:.0f} s, which the judgement leaves out.",
        "",
        f"Judgement: **{verdict}**. Violations found by `pbstream audit` afterwards: "
        f"{sum(found['violations'].values())}. "
        "Decisions, bills and rewards that never came: "
        f"{'/'.join(map(str, found['owed'].values()))}.",
        "",
        (
            "| measured every 5 s | first third | last third | growth | allowed | per hour | "
            "peak | flat |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, meaning in MEANING.items():
        one = found["trends"][name]
        lines.append(
            f"| {meaning} | {one['first']:.1f} | {one['last']:.1f} | {one['growth']:+.1%} | "
            f"{TOLERANCE[name]:+.0%} "
            f"| {one['per_hour']:+.1f} | {one['peak']:.1f} | "
            f"{'yes' if found['flat'][name] else '**no**'} |"
        )
    lines += [
        "",
        (
            "First and last third: medians. Per hour: the median slope between all pairs of "
            "samples (Theil–Sen)."
        ),
        "",
        shown("soak.png", "memory, latency and lag over time"),
    ]
    return signed("\n".join(lines) + "\n")


def draw(found: dict[str, Any], target: Path) -> None:
    """Draw the samples."""
    minutes = [sample["seconds"] / 60.0 for sample in found["samples"]]
    panels: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
        ("resident memory, MB", (("memory_mb", "worker"), ("redis_mb", "Redis"))),
        ("request to decision, ms", (("p50_ms", "p50"), ("p99_ms", "p99"))),
        ("events not committed", (("lag", ""),)),
        ("decisions per second", (("answered", ""),)),
    )
    made, grid = figure(len(panels), width=8.0, height=2.0, sharex=True)
    made.suptitle(
        f"One worker for {found['minutes']:g} minutes at {found['rate']:.0f} requests/s, half of "
        "what it sustains",
        x=0.01,
        ha="left",
    )
    for axes, (title, series) in zip(grid[:, 0], panels, strict=True):
        for colour, (name, label) in zip(LINES, series, strict=False):
            values = [sample[name] for sample in found["samples"]]
            axes.plot(minutes, values, color=colour, linewidth=1.2, label=label or None)
        axes.axvspan(0.0, found["warm_up"] / 60.0, color=GRID, linewidth=0)
        axes.set_ylim(bottom=0.0)
        entitle(axes, title)
        if len(series) > 1:
            axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, ncol=2)
    grid[-1, 0].set_xlabel("minutes (grey: warm-up)")
    save_png(made, target)
