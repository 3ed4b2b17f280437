"""Play worlds: each one is built once and every policy plays it; in this process, or in several."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.arena import play
from benchmarks.elsewhere import made, real
from benchmarks.elsewhere.contenders import CONTENDERS
from benchmarks.elsewhere.drawn import drawn
from benchmarks.elsewhere.measures import measured, references
from benchmarks.elsewhere.world import World


@dataclass(frozen=True, slots=True)
class Job:
    """A world and who plays it. `where` is the maker's name, `seed` a world's number or the seed of its order."""

    where: str
    seed: int
    policies: tuple[str, ...]
    budget: float = 0.0
    order: str = "mixed"
    folder: Path | None = None
    seconds: float = 6.0


def build(job: Job) -> World:
    """Make a job's world."""
    if job.where == "drawn":
        return drawn(job.seed, seconds=job.seconds)
    if job.where == "winner":
        return made.winner(job.seed)
    if job.where == "tasks":
        return made.tasks(job.order, job.seed)
    if job.where == "eleven":
        assert job.folder is not None
        return real.eleven_models(job.folder, job.budget, job.seed, order=job.order)
    return real.home(job.budget, job.seed, priors=job.where == "home with priors")


def run_job(job: Job) -> list[dict[str, Any]]:
    """Play a job's world with every policy; return one result per policy and yardstick."""
    world = build(job)
    common = {"kind": world.kind, "world": world.name, "seed": job.seed, "budget": world.budget, "stationary": world.stationary}
    found = [{**common, "policy": name, **of} for name, of in references(world).items()]
    for name in job.policies:
        started = time.process_time()
        trace = play(CONTENDERS[name](job.seed), world.episode())
        found.append({**common, "policy": name, **measured(world, trace), "seconds": time.process_time() - started})
    return [{**result, "facts": dict(world.facts)} for result in found]


def run_all(jobs: Sequence[Job], *, workers: int) -> list[dict[str, Any]]:
    """Play every job, with a progress bar; return their results in the jobs' order."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    results: list[dict[str, Any]] = []
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("worlds", total=len(jobs))
        for job, found in zip(jobs, _each(jobs, workers), strict=True):
            results += found
            progress.update(bar, advance=1, description=job.where)
    return results


def _each(jobs: Sequence[Job], workers: int) -> Iterator[list[dict[str, Any]]]:
    if workers <= 1:
        yield from map(run_job, jobs)
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before a worker imports numpy
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_job, jobs)
