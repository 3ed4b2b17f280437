"""Measure the effect of each mechanism of the live profile: switched off one at a time, and
switched on one at a time in the paper's.

uv run python -m benchmarks.ablation [--quick]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import drift, frontier, inflight, onboarding, sparse
from benchmarks.data import extended_folder
from benchmarks.policies import VARIANTS
from benchmarks.protocol import LOOSE, MODERATE, TIGHT, prompts
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from benchmarks.rows import Job, Row, gather

BUDGETS = (TIGHT, MODERATE, LOOSE)
NAMES = (
    "live",
    *(name for name in VARIANTS if name.startswith("live")),
    "paper",
    *(n for n in VARIANTS if n.startswith("paper")),
)


def jobs_of(names: Sequence[str], seeds: int) -> dict[str, tuple[Callable[[Job], Any], list[Job]]]:
    """Return the function and the jobs of each measure: a small part of the other benchmarks."""
    everyone: list[Job] = [
        {"policy": name, "seed": seed} for name in names for seed in range(seeds)
    ]
    fallen = {
        "model": "mistral",
        "form": "constant",
        "level": 0.5,
        "in_flight": 0,
        "budget": MODERATE,
    }
    return {
        "frontier": (
            frontier.one,
            [
                j | {"budget": b, "in_flight": k}
                for j in everyone
                for b in BUDGETS
                for k in (0, 100)
            ],
        ),
        "inflight": (
            inflight.one,
            [j | {"budget": MODERATE, "in_flight": 100, "delay": "fixed"} for j in everyone],
        ),
        "sparse": (
            sparse.one,
            [j | {"budget": b, "judged": 0.01, "in_flight": 0} for j in everyone for b in BUDGETS],
        ),
        "drift": (drift.one, [j | fallen for j in everyone]),
        "onboarding": (
            onboarding.one,
            [j | {"budget": TIGHT, "newcomer": "good and dear", "in_flight": 0} for j in everyone],
        ),
    }


def measures(rows: dict[str, list[Row]], name: str) -> dict[str, float]:
    """Return a variant's line of the table."""

    def of(benchmark: str, key: str, **wanted: object) -> list[float]:
        mine = [r for r in rows[benchmark] if r["policy"] == name]
        return [r[key] for r in mine if all(r[field] == value for field, value in wanted.items())]

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    return {
        "reward": mean(of("frontier", "reward", in_flight=0)),
        "cost ÷ B": max(
            of("frontier", "cost_over_budget", in_flight=0), key=lambda c: abs(c - 1.0)
        ),
        "cost ÷ B, 100 in flight": max(
            of("frontier", "cost_over_budget", in_flight=100), key=lambda c: abs(c - 1.0)
        ),
        "cost ÷ B, price restored": mean(of("inflight", "cost_over_budget", phase="P3")),
        "reward, 1 % judged": mean(of("sparse", "reward")),
        "reward, Mistral at 0.5": mean(of("drift", "reward", phase="P2")),
        "after ÷ before": mean(of("drift", "reward", phase="after ÷ before")),
        "cost ÷ B, dear newcomer": mean(of("onboarding", "cost_over_budget", phase="Q1")),
    }


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Switch mechanisms off and on, one at a time."""
    seeds = chosen.seeds or (1 if quick else 10)
    names = chosen.of(NAMES[:2] if quick else NAMES)
    folder = extended_folder()
    for split in ("val", "test"):
        prompts(split), prompts(split, folder)
    rows = {}
    for benchmark, (one, jobs) in jobs_of(names, seeds).items():
        if quick:
            jobs = [job for job in jobs if job.get("budget") != LOOSE]
        rows[benchmark] = gather(one, jobs)
    table = {name: measures(rows, name) for name in names}
    columns = list(table["live"])
    title = (
        f"Held-out prompts, budgets {TIGHT:g}, {MODERATE:g} and {LOOSE:g}, {seeds} seeds; of "
        "costs the worst budget's"
    )
    print_table(
        title,
        ("variant", *columns),
        [[name, *(f"{v:.3f}" for v in line.values())] for name, line in table.items()],
    )
    flat = [{"variant": name, **line} for name, line in table.items()]
    print_figures("ablation", {"variants": len(flat)}, rows=flat)


if __name__ == "__main__":
    command(run)()
