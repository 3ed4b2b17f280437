"""Families: what a new router gains by what the others of its family have learned.

    uv run python -m benchmarks.families [--quick] [--world NAME] [--broken inverted]

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
from pathlib import Path

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


def one(job: Job, hows: Sequence[str]) -> dict[str, list[float]]:
    """Return mean reward, cost in budgets, and mean reward of those after the third, by how they
    play."""
    whole = tenants_of(job)
    played = broken(whole, 2, job.broken) if job.broken else whole
    measured = [k for k in range(len(whole)) if not (job.broken and k == 2)]
    found = {}
    for how in hows:
        name = "family" if how == "unbroken" else how
        chosen = play(whole if how == "unbroken" else played, name, job.order)
        found[how] = _measured(whole, chosen, measured)
    found["hindsight"] = _measured(whole, [_line(tenant) for tenant in whole], measured)
    return found


def _measured(tenants: Sequence[Tenant], chosen: Sequence[Whole], of: Sequence[int]) -> list[float]:
    rewards, costs = [], []
    for k in of:
        at, tenant = np.arange(len(chosen[k])), tenants[k]
        rewards.append(float(tenant.quality[at, chosen[k]].mean()))
        costs.append(float(tenant.costs[at, chosen[k]].mean()) / tenant.budget)
    late = [reward for k, reward in zip(of, rewards, strict=True) if k >= 3]
    return [float(np.mean(rewards)), float(np.mean(costs)), float(np.mean(late))]


def _line(tenant: Tenant) -> Whole:
    """Return the choices of the cross-fitted line in hindsight."""
    scale = tenant.costs.mean(0)
    expected = np.maximum(held_out(tenant.contexts, tenant.costs / scale), 0.05) * scale
    scores = held_out(tenant.contexts, tenant.rewards)
    return within_budget(scores, expected, tenant.costs, tenant.budget)


def report(label: str, found: Sequence[dict[str, list[float]]], hows: Sequence[str]) -> None:
    """Write the means over seeds, and the differences to being alone with their 95 % intervals."""
    parts = []
    for how in (*hows, "hindsight"):
        mean = np.mean([row[how] for row in found], axis=0)
        parts.append(f"{how} {mean[0]:.4f} ({mean[1]:.2f} B)")
    base = "unbroken" if "unbroken" in hows else "alone"
    for how in hows:
        if how != base:
            gains = [row[how][0] - row[base][0] for row in found]
            late = [row[how][2] - row[base][2] for row in found]
            parts.append(
                f"{how} − {base} {np.mean(gains):+.4f} ± {half_width(gains):.4f}"
                f" (from the fourth on {np.mean(late):+.4f}, least {min(gains):+.4f})"
            )
    click.echo(f"{label}: " + ", ".join(parts))


@click.command()
@click.option("--quick", is_flag=True, help="Few seeds, two drawn kinds, and code.")
@click.option("--seeds", default=20, help="Families of each kind.")
@click.option("--first", default=HELD_BACK, help="First seed.")
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS))
@click.option("--order", "orders", multiple=True, type=click.Choice(ORDERS))
@click.option("--how", "hows", multiple=True, type=click.Choice((*HOWS, "unbroken")))
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
    broken: str,
    data: Path | None,
    as_json: bool,
) -> None:
    """Compare families with tenants that are alone."""
    folder = folder_of(data)
    if quick:
        worlds, orders, seeds = worlds or ("drawn", "code"), orders or ("in turn",), min(seeds, 4)
    hows = hows or (("unbroken", "family") if broken else HOWS)
    with _pool() as pool:
        for world in worlds or WORLDS:
            if folder is None and world in ("eleven", "nine"):
                click.echo(f"{world}: left out, its data is not here (PB_DATA)")
                continue
            kinds = (UNLIKE[::4] if quick else UNLIKE) if world == "drawn" else (0.0,)
            for order in orders or ORDERS:
                for unlike in kinds:
                    jobs = [
                        Job(world, order, seed, folder or BESIDE, unlike, broken)
                        for seed in range(first, first + seeds)
                    ]
                    found = list(pool.map(partial(one, hows=hows), jobs))
                    label = f"{world}, {order}" + (f", {unlike:g}" if world == "drawn" else "")
                    if as_json:
                        for job, row in zip(jobs, found, strict=True):
                            click.echo(json.dumps({"label": label, "seed": job.seed, **row}))
                    report(label, found, hows)


if __name__ == "__main__":
    main()
