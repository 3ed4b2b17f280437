"""Families: what a new router gains by what the others of its family have learned.

    uv run python -m benchmarks.families [--quick] [--world NAME] [--between] [--broken inverted]

Tenants have 200 requests each, and a router each. They come one after another, or all at once.
Bills come 30, labels 100 requests late. Beside the family stand each tenant alone, all pooled in
one router, and the linear line of hindsight of each tenant. Nothing was chosen on seeds from
`HELD_BACK` on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import click
import numpy as np

from benchmarks.elsewhere.real import BESIDE, folder_of
from benchmarks.family_play import play
from benchmarks.family_worlds import UNLIKE, Tenant, Whole, broken, drawn, judged
from benchmarks.rows import _pool, half_width
from benchmarks.yardsticks import within_budget
from studies.warm_start.lines import held_out

HELD_BACK = 1000
"""First seed on which nothing was chosen."""
WORLDS = ("drawn", "eleven", "code", "nine", "paper")
ORDERS = ("in turn", "at once")
HOWS = ("alone", "family", "pooled")
OF_BROKEN = ("without", "unbroken", "family")
"""The third tenant is not there, has good labels, or has broken ones."""
DEGREES = (0.0, 0.04, 0.08, 0.12, 0.16, 0.20, 0.24)
"""Edges between which drawn degrees are shown together."""

Found: TypeAlias = dict[str, list[tuple[float, float]]]
"""Mean reward, and cost in budgets, of each tenant, by how they play."""


@dataclass(frozen=True, slots=True)
class Job:
    """One family that is played in one order; `unlike` is of drawn ones; `broken` says how the
    third tenant's labels are, who then is not measured."""

    world: str
    order: str
    seed: int
    folder: Path
    unlike: float = 0.0
    broken: str = ""


def tenants_of(job: Job) -> list[Tenant]:
    """Make a job's tenants."""
    if job.world == "drawn":
        return drawn(job.seed, unlike=job.unlike)
    return judged(job.world, job.seed, job.folder)


def one(job: Job, hows: Sequence[str]) -> Found:
    """Return rewards and costs of the tenants that are measured."""
    whole = tenants_of(job)
    played = {
        "unbroken": whole,
        "without": whole[:2] + whole[3:],
        "family": broken(whole, 2, job.broken) if job.broken else whole,
    }
    measured = [k for k in range(len(whole)) if not (job.broken and k == 2)]
    found = {}
    for how in hows:
        chosen = play(played.get(how, whole), "family" if how in played else how, job.order)
        if how == "without":
            chosen.insert(2, chosen[0])
        found[how] = [_measured(whole[k], chosen[k]) for k in measured]
    found["hindsight"] = [_measured(whole[k], _line(whole[k])) for k in measured]
    return found


def _measured(tenant: Tenant, chosen: Whole) -> tuple[float, float]:
    at = np.arange(len(chosen))
    cost = float(tenant.costs[at, chosen].mean()) / tenant.budget
    return float(tenant.quality[at, chosen].mean()), cost


def _line(tenant: Tenant) -> Whole:
    """Return the choices of the cross-fitted line in hindsight."""
    scale = tenant.costs.mean(0)
    expected = np.maximum(held_out(tenant.contexts, tenant.costs / scale), 0.05) * scale
    scores = held_out(tenant.contexts, tenant.rewards)
    return within_budget(scores, expected, tenant.costs, tenant.budget)


def report(label: str, found: Sequence[Found], hows: Sequence[str]) -> None:
    """Write the means over families, and the differences to the first of `hows` with their 95 %
    intervals; and how many families lost more than the interval over their tenants, or 0.002."""
    parts = []
    for how in (*hows, "hindsight"):
        reward, cost = np.mean([np.mean(row[how], axis=0) for row in found], axis=0)
        parts.append(f"{how} {reward:.4f} ({cost:.2f} B)")
    for how in hows[1:]:
        tenants = [
            [one[0] - other[0] for one, other in zip(row[how], row[hows[0]], strict=True)]
            for row in found
        ]
        gains = [float(np.mean(row)) for row in tenants]
        lost = sum(gain < -half_width(row) for gain, row in zip(gains, tenants, strict=True))
        parts.append(
            f"{how} − {hows[0]} {np.mean(gains):+.4f} ± {half_width(gains):.4f} (least"
            f" {min(gains):+.4f}; {lost} lose, {sum(gain < -0.002 for gain in gains)} by 0.002)"
        )
    click.echo(f"{label}, {len(found)} families: " + ", ".join(parts))


def degree_of(seed: int) -> float:
    """Return how unlike the tenants of a drawn family are, from 0 to the largest of `DEGREES`."""
    return float(np.random.default_rng([60, seed]).uniform(0.0, DEGREES[-1]))


def between(jobs: Sequence[Job], found: Sequence[Found], hows: Sequence[str]) -> None:
    """Report families of all degrees together, and then those between two edges."""
    report("drawn, all", found, hows)
    for low, high in pairwise(DEGREES):
        rows = [row for job, row in zip(jobs, found, strict=True) if low <= job.unlike < high]
        if rows:
            report(f"drawn, {low:.2f} to {high:.2f}", rows, hows)


@click.command()
@click.option("--quick", is_flag=True, help="Few seeds, two drawn kinds, and code.")
@click.option("--seeds", default=20, help="Families of each kind.")
@click.option("--first", default=HELD_BACK, help="First seed.")
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS))
@click.option("--order", "orders", multiple=True, type=click.Choice(ORDERS))
@click.option("--how", "hows", multiple=True, type=click.Choice((*HOWS, *OF_BROKEN[:2])))
@click.option("--between", "at_degrees", is_flag=True, help="Drawn families of all degrees.")
@click.option("--broken", default="", type=click.Choice(("", "inverted", "constant", "scale")))
@click.option("--data", type=click.Path(path_type=Path), help="Folder with more data.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each family.")
def main(
    *,
    quick: bool,
    seeds: int,
    first: int,
    worlds: Sequence[str],
    orders: Sequence[str],
    hows: Sequence[str],
    at_degrees: bool,
    broken: str,
    data: Path | None,
    as_json: bool,
) -> None:
    """Compare families with tenants that are alone."""
    folder = folder_of(data)
    if quick:
        worlds, orders, seeds = worlds or ("drawn", "code"), orders or ("in turn",), min(seeds, 4)
    hows = hows or (OF_BROKEN if broken else HOWS)
    play_one = partial(one, hows=hows)
    span = range(first, first + seeds)
    with _pool() as pool:
        if at_degrees:
            jobs = [Job("drawn", "in turn", k, BESIDE, degree_of(k), broken) for k in span]
            between(jobs, list(pool.map(play_one, jobs)), hows)
            return
        for world in worlds or WORLDS:
            if folder is None and world in ("eleven", "nine"):
                click.echo(f"{world}: left out, its data is not here (PB_DATA)")
                continue
            kinds = (UNLIKE[::4] if quick else UNLIKE) if world == "drawn" else (0.0,)
            for order in orders or ORDERS:
                for unlike in kinds:
                    jobs = [Job(world, order, k, folder or BESIDE, unlike, broken) for k in span]
                    found = list(pool.map(play_one, jobs))
                    label = f"{world}, {order}" + (f", {unlike:g}" if world == "drawn" else "")
                    if as_json:
                        for job, row in zip(jobs, found, strict=True):
                            click.echo(json.dumps({"label": label, "seed": job.seed, **row}))
                    report(label, found, hows)


if __name__ == "__main__":
    main()
