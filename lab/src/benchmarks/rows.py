"""Rows of results: one object per policy, budget, delay and phase, with 95 % half-widths over
seeds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np

from benchmarks.arena import Trace

Row = dict[str, Any]
Job = dict[str, Any]
Result = Mapping[str, tuple[float, ...]]


def half_width(samples: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean (Student's t over seeds); 0 for one sample."""
    n = len(samples)
    if n < 2:
        return 0.0
    from scipy import stats  # a second of imports, for this alone

    return float(stats.t.ppf(0.975, n - 1) * np.std(samples, ddof=1) / math.sqrt(n))


def row(samples: Sequence[tuple[float, ...]], extra: Sequence[str] = (), **names: Any) -> Row:
    """Return one row from (cost ÷ budget, reward, …) per seed; of what is `extra` the mean."""
    cost, reward = ([sample[j] for sample in samples] for j in (0, 1))
    return {
        **names,
        "cost_over_budget": float(np.mean(cost)),
        "cost_over_budget_half_width": half_width(cost),
        "reward": float(np.mean(reward)),
        "reward_half_width": half_width(reward),
        "seeds": len(samples),
        **{
            name: float(np.mean([sample[2 + j] for sample in samples]))
            for j, name in enumerate(extra)
        },
    }


def gather(
    one: Callable[[Job], Result], jobs: Sequence[Job], extra: Sequence[str] = ()
) -> list[Row]:
    """Play every job, on every core, and return a row per combination of its names and phase, over
    the seeds.

    Args:
        one: takes a job, {name: value} with a `seed`, and returns (cost ÷ budget, reward, …) by
            phase.
        extra: what follows in those tuples.
    """
    with _pool() as pool:
        return _rows(jobs, list(pool.map(one, jobs, chunksize=4)), extra)


def gather_alike(
    each: Callable[[list[Job]], list[Result]],
    jobs: Sequence[Job],
    *,
    differ: Sequence[str],
    extra: Sequence[str] = (),
) -> list[Row]:
    """Do as `gather`, for jobs that begin alike but for what is named in `differ`.

    Args:
        each: takes such jobs together and returns their results.
    """
    together: dict[tuple[Any, ...], list[Job]] = {}
    for job in jobs:
        together.setdefault(
            tuple(value for name, value in job.items() if name not in differ), []
        ).append(job)
    groups = list(together.values())
    with _pool() as pool:
        results = list(pool.map(each, groups))
    return _rows(
        [job for group in groups for job in group],
        [result for group in results for result in group],
        extra,
    )


def _pool() -> ProcessPoolExecutor:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before a worker imports numpy
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))


def _rows(jobs: Sequence[Job], results: Sequence[Result], extra: Sequence[str]) -> list[Row]:
    samples: dict[tuple[Any, ...], list[tuple[float, ...]]] = {}
    names: dict[tuple[Any, ...], Job] = {}
    for job, result in zip(jobs, results, strict=True):
        for phase, sample in result.items():
            told = {name: value for name, value in job.items() if name != "seed"} | {"phase": phase}
            key = tuple(told.values())
            names[key] = told
            samples.setdefault(key, []).append(sample)
    return [row(samples[key], extra, **told) for key, told in names.items()]


def outcomes(trace: Trace, phases: Mapping[str, slice]) -> dict[str, tuple[float, ...]]:
    """Return (cost ÷ budget, reward) by phase."""
    return {
        name: (
            float((trace.cost[phase] / trace.budget[phase]).mean()),
            float(trace.reward[phase].mean()),
        )
        for name, phase in phases.items()
    }


def cells(rows: Sequence[Row], *names: str) -> list[list[str]]:
    """Return rows for a table: these names, then cost ÷ budget and reward with their
    half-widths.
    """
    return [
        [
            *(
                f"{value:.3g}" if isinstance(value := r[name], float) else str(value)
                for name in names
            ),
            f"{r['cost_over_budget']:.3f} ± {r['cost_over_budget_half_width']:.3f}",
            f"{r['reward']:.4f} ± {r['reward_half_width']:.4f}",
        ]
        for r in rows
    ]
