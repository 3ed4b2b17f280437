"""The live profile on contexts of the static encoder and of int8 MiniLM: the same orders, budgets
and delays.

uv run python -m benchmarks.encoder_frontier [--quick]

Projection and priors are fitted on the warm-up prompts on both sides; those are then routed
unmeasured, as in `frontier`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from benchmarks.arena import play
from benchmarks.frontier import OFFSET
from benchmarks.policies import make
from benchmarks.protocol import declaration, draw, episode, prompts
from benchmarks.report import command, print_figures, print_table
from benchmarks.rows import Job, Row, cells, gather, outcomes
from streams.demo.portfolio import known_before
from streams.encoder.sentences import Backend
from streams.warm_start.priors import Priors

ENCODERS: tuple[Backend, ...] = ("onnx", "static")
BUDGETS = (8.3e-5, 2.3e-4, 3.0e-4, 6.62e-4, 1.87e-3, 5.3e-3)
IN_FLIGHT = 100


@lru_cache
def priors(encoder: Backend) -> Priors:
    """Return what the warm-up prompts say in the coordinates of an encoder."""
    return known_before(encoder)


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one encoder, budget and seed."""
    encoder: Backend = job["encoder"]
    drawn = draw(job["seed"], offset=OFFSET, encoder=encoder)
    phases = {"test": slice(drawn.warm, len(drawn))}
    declared = {0: declaration(drawn.benchmark, job["budget"], priors=priors(encoder))}
    played = episode(drawn, declared, phases=phases, bill_delay=IN_FLIGHT, reward_delay=IN_FLIGHT)
    return outcomes(play(make("live", job["seed"]), played), phases)


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return how much reward the static encoder loses, at its worst budget and on average."""
    earned = {(r["encoder"], r["budget"]): r["reward"] for r in rows}
    lost = [
        earned["onnx", budget] - earned["static", budget] for budget in {r["budget"] for r in rows}
    ]
    return {"reward_lost_most": max(lost), "reward_lost_mean": sum(lost) / len(lost)}


def run(quick: bool) -> None:
    """Compare both encoders at six budgets with a hundred requests in flight."""
    prompts("val"), prompts("test")
    seeds, budgets = (2, BUDGETS[2:4]) if quick else (20, BUDGETS)
    jobs: list[Job] = [
        {"encoder": encoder, "budget": budget, "seed": seed}
        for encoder, budget, seed in product(ENCODERS, budgets, range(seeds))
    ]
    rows = gather(one, jobs)
    rows.sort(key=lambda r: (r["budget"], r["encoder"]))
    columns = ("budget", "encoder")
    title = f"live, {IN_FLIGHT} in flight, {seeds} seeds, ± 95 %"
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    print_figures("encoder_frontier", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
