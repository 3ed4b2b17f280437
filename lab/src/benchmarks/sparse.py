"""Measure the loss of quality when few requests are judged, and late.

uv run python -m benchmarks.sparse [--quick]
"""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks import plots
from benchmarks.arena import NEVER, delays, play
from benchmarks.policies import make
from benchmarks.protocol import BUDGETS, TIGHT, declaration, draw, episode, prompts
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from benchmarks.rows import Job, Row, cells, gather, outcomes

OFFSET = 3000
JUDGED = (1.0, 0.1, 0.01)
IN_FLIGHT = (0, 100, 1000)
COMPARED = ("live", "paper", "thompson", "ε-greedy", "random")


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one policy, budget, share of judged requests, delay and seed. Bills come at once."""
    seed = job["seed"]
    drawn = draw(seed, offset=OFFSET)
    phases = {"test": slice(drawn.warm, len(drawn))}
    rng = np.random.default_rng(OFFSET + seed)
    late = delays(len(drawn), job["in_flight"], "exponential", rng)
    late = np.where(rng.random(len(drawn)) < job["judged"], late, NEVER)
    played = episode(
        drawn, {0: declaration(drawn.benchmark, job["budget"])}, phases=phases, reward_delay=late
    )
    return outcomes(play(make(job["policy"], seed), played), phases)


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return how much reward the live profile loses at its worst budget to full feedback at
    once.
    """
    live = {
        (r["budget"], r["judged"], r["in_flight"]): r["reward"]
        for r in rows
        if r["policy"] == "live"
    }
    return {
        f"lost_at_{judged:g}": max(
            live[b, 1.0, 0] - reward for (b, j, _), reward in live.items() if j == judged
        )
        for judged in JUDGED
    }


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare policies with all, a tenth and a hundredth of the requests judged."""
    seeds = chosen.seeds or (2 if quick else 20)
    budgets = (TIGHT,) if quick else tuple(sorted({*BUDGETS, TIGHT}))
    prompts("val"), prompts("test")
    jobs: list[Job] = [
        {"policy": name, "budget": budget, "judged": judged, "in_flight": k, "seed": seed}
        for name, budget, judged, k, seed in product(
            chosen.of(COMPARED), budgets, JUDGED, IN_FLIGHT, range(seeds)
        )
        if (name in ("live", "paper") and not (quick and k == 100)) or (k == 0 and not quick)
    ]
    rows = gather(one, jobs)
    columns = ("policy", "budget", "judged", "in_flight")
    rows.sort(key=lambda r: (r["budget"], r["policy"], -r["judged"], r["in_flight"]))
    title = (
        f"A share of the requests judged, exponentially late; held-out prompts, {seeds} seeds, ± "
        "95 %"
    )
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    if not quick and not chosen.policies:
        plots.sparse(rows)
    print_figures("sparse", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
