"""The live profile on contexts of the static encoder and of int8 MiniLM: the same orders, budgets
and delays.

uv run python -m benchmarks.encoder_frontier [--quick]

learned: the paper's prompts; projection and priors are fitted on the warm-up prompts on both sides,
which are then routed unmeasured, as in `frontier`. A third side has MiniLM's projection of the
`paretobandit` wheel, fitted on 8,373 prompts.

cold: the paper's and, where their file is, the
prompts of eleven models as in `elsewhere`: nothing known before, each encoder with the general
projection that it comes with.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple

from benchmarks.arena import play
from benchmarks.data import fitted_projection
from benchmarks.elsewhere.real import (
    ELEVEN_BUDGETS,
    HOME_BUDGETS,
    eleven_models,
    folder_of,
    home,
)
from benchmarks.frontier import OFFSET
from benchmarks.policies import make
from benchmarks.protocol import declaration, draw, episode
from benchmarks.report import command, print_figures, print_table
from benchmarks.rows import Job, Row, cells, gather, outcomes
from commands.demo.paper_models import known_before
from streams.encoder.sentence_encoder import Backend
from streams.priors.fitted_priors import Priors

LEARNED, COLD, ELEVEN = "the paper's, learned", "the paper's, cold", "eleven models, cold"
LEARNED_BUDGETS = (8.3e-5, 2.3e-4, 3.0e-4, 6.62e-4, 1.87e-3, 5.3e-3)
IN_FLIGHT = 100
STATIC, ONNX, DIFFERENCE = "static", "onnx", "static − onnx"
Outcome = tuple[float, ...]


class Side(NamedTuple):
    """The encoder of the contexts, and whether the projection is fitted on the warm-up prompts."""

    encoder: Backend
    fitted: bool


SIDES = {
    STATIC: Side("static", True),
    ONNX: Side("onnx", True),
    "onnx, wheel's projection": Side("onnx", False),
}


def one(job: Job) -> dict[str, Outcome]:
    """Play one world, budget and seed on every side; return (cost ÷ budget, reward) by side, and of
    the difference of the two encoders.
    """
    play_world = learned if job["world"] == LEARNED else cold
    found = play_world(job)
    pairs = zip(found[STATIC], found[ONNX], strict=True)
    return found | {DIFFERENCE: tuple(static - onnx for static, onnx in pairs)}


def learned(job: Job) -> dict[str, Outcome]:
    """Play the paper's prompts with what the warm-up prompts say."""
    found: dict[str, Outcome] = {}
    for name, side in SIDES.items():
        drawn = draw(job["seed"], offset=OFFSET, encoder=side.encoder, fitted=side.fitted)
        declared = {0: declaration(drawn.benchmark, job["budget"], priors=priors(side))}
        phases = {name: slice(drawn.warm, len(drawn))}
        played = episode(
            drawn, declared, phases=phases, bill_delay=IN_FLIGHT, reward_delay=IN_FLIGHT
        )
        found |= outcomes(play(make("live", job["seed"]), played), phases)
    return found


@lru_cache
def priors(side: Side) -> Priors:
    """Return what the warm-up prompts say in the coordinates of a side."""
    return known_before(side.encoder, fitted_projection(side.encoder) if side.fitted else None)


def cold(job: Job) -> dict[str, Outcome]:
    """Play prompts without priors, once with each encoder."""
    found: dict[str, Outcome] = {}
    encoders: tuple[Backend, ...] = ("static", "onnx")
    for encoder in encoders:
        if job["world"] == COLD:
            world = home(job["budget"], job["seed"], priors=False, encoder=encoder)
        else:
            world = eleven_models(
                job["folder"], job["budget"], job["seed"], order="mixed", encoder=encoder
            )
        phases: dict[str, slice] = {encoder: world.phases["whole"]}
        found |= outcomes(play(make("live", job["seed"]), world.episode()), phases)
    return found


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return how much reward the static encoder loses, at its worst budget and on average over all
    worlds.
    """
    lost = [-r["reward"] for r in rows if r["phase"] == DIFFERENCE]
    return {"reward_lost_most": max(lost), "reward_lost_mean": sum(lost) / len(lost)}


def run(quick: bool) -> None:
    """Compare both encoders where the paper's prompts were learned before, and on worlds that are
    new to the router."""
    folder = folder_of(None)
    worlds = {LEARNED: LEARNED_BUDGETS, COLD: HOME_BUDGETS}
    if folder is not None:
        worlds[ELEVEN] = ELEVEN_BUDGETS
    jobs: list[Job] = [
        {"world": world, "budget": budget, "seed": seed, "folder": folder}
        for world, budgets in worlds.items()
        for budget, seed in product(budgets[2:4] if quick else budgets, range(2 if quick else 20))
    ]
    # Encoded once here, and read from the cache by all workers.
    for world in worlds:
        one(next(job for job in jobs if job["world"] == world))
    rows = gather(one, jobs)
    columns = ("world", "budget", "phase")
    title = f"live, {rows[0]['seeds']} seeds, ± 95 %"
    print_table(title, (*columns, "cost ÷ budget", "reward"), cells(rows, *columns))
    told = [{name: value for name, value in r.items() if name != "folder"} for r in rows]
    print_figures("encoder_frontier", verdict(rows), rows=told)


if __name__ == "__main__":
    command(run)()
