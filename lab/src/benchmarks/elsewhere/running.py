"""Play worlds: each one is built once and every policy plays it; in this process, or in several."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.arena import play
from benchmarks.elsewhere import made, real
from benchmarks.elsewhere.contenders import CONTENDERS
from benchmarks.elsewhere.drawn import drawn
from benchmarks.elsewhere.measures import measured, references
from benchmarks.elsewhere.world import World
from streams.encoder.sentence_encoder import Backend

YARDSTICKS = ("best fixed mix", "hindsight")
APART = 1_000_000  # from a policy's seed to its next one in the same world


@dataclass(frozen=True, slots=True)
class Job:
    """A world and who plays it. `where` is the maker's name, `seed` a world's number or the seed of
    its order.

    `encoder` makes the contexts of real prompts (None: see `real.cold_prompts`); `references`:
    whether the yardsticks are computed as well; `revealed` and `again`, the seed of a drawn world:
    see `drawn`.
    """

    where: str
    seed: int
    policies: tuple[str, ...]
    budget: float = 0.0
    order: str = "mixed"
    folder: Path | None = None
    seconds: float = 6.0
    encoder: Backend | None = None
    references: bool = True
    revealed: tuple[str, ...] = ()
    again: int = 1

    @property
    def world(self) -> str:
        """Return the key of the world in a file of results."""
        named = f"{self.where} {self.seed} {self.budget:g} {self.order} {self.seconds:g}"
        seed = [f"seed {self.again}"] if self.again != 1 else []
        return " ".join([named, *([self.encoder] if self.encoder else []), *self.revealed, *seed])


def build(job: Job) -> World:
    """Make a job's world."""
    if job.where == "drawn":
        return drawn(job.seed, seconds=job.seconds, revealed=job.revealed, seed=job.again)
    if job.where == "winner":
        return made.winner(job.seed)
    if job.where == "tasks":
        return made.tasks(job.order, job.seed)
    if job.where == "eleven":
        assert job.folder is not None
        return real.eleven_models(
            job.folder, job.budget, job.seed, order=job.order, encoder=job.encoder
        )
    return real.home(
        job.budget, job.seed, priors=job.where == "home with priors", encoder=job.encoder
    )


def run_job(job: Job) -> list[dict[str, Any]]:
    """Play a job's world with every policy; return one result per policy and yardstick."""
    world = build(job)
    common = {
        "key": job.world,
        "kind": world.kind,
        "world": world.name,
        "seed": job.seed,
        "budget": world.budget,
        "stationary": world.stationary,
    }
    found = (
        [{**common, "policy": name, **of} for name, of in references(world).items()]
        if job.references
        else []
    )
    for name in job.policies:
        started = time.process_time()
        policy = CONTENDERS[name](job.seed + APART * (job.again - 1))
        trace = play(policy, world.episode())
        found.append(
            {
                **common,
                "policy": name,
                **measured(world, trace),
                "seconds": time.process_time() - started,
            }
        )
    return [{**result, "facts": dict(world.facts)} for result in found]


def run_all(jobs: Sequence[Job], *, workers: int, kept: Path | None = None) -> list[dict[str, Any]]:
    """Play every job, with a progress bar; return their results in the jobs' order.

    Args:
        kept: a file of earlier results, a JSON object a line: what is there is not played again,
            what is new is added.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    before = _read(kept)
    results = [
        before[job.world, name]
        for job in jobs
        for name in (*YARDSTICKS, *job.policies)
        if (job.world, name) in before
    ]
    jobs = [rest for job in jobs if (rest := _rest(job, before)) is not None]
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("worlds", total=len(jobs))
        for job, found in zip(jobs, _each(jobs, workers), strict=True):
            results += found
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(result) + "\n" for result in found)
            progress.update(bar, advance=1, description=job.where)
    return results


def _read(kept: Path | None) -> dict[tuple[str, str], dict[str, Any]]:
    if kept is None or not kept.exists():
        return {}
    found = (json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines())
    return {(result["key"], result["policy"]): result for result in found}


def _rest(job: Job, before: dict[tuple[str, str], dict[str, Any]]) -> Job | None:
    """Return what of a job is still to be played."""
    policies = tuple(name for name in job.policies if (job.world, name) not in before)
    wanted = any((job.world, name) not in before for name in YARDSTICKS)
    return replace(job, policies=policies, references=wanted) if policies or wanted else None


def _each(jobs: Sequence[Job], workers: int) -> Iterator[list[dict[str, Any]]]:
    if workers <= 1:
        yield from map(run_job, jobs)
        return
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before a worker imports numpy
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_job, jobs)
