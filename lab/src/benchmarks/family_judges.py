"""Families whose members have a judge: what it gains to share by how much its labels are above
gold.

    python -m benchmarks.family_judges [--seeds 30] [--gold 0.1] [--kind alike]

Four tenants of one drawn world come one after another, with 500 requests each, all judged. People
label a share of them. The judge favours a model by 0.2. Of half alike tenants every second one has
an honest judge of the same name. In pairs stand the same family without the offsets of judges in
its reports, and with them. The first tenant is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click
import numpy as np

from benchmarks.arena import Array
from benchmarks.family_play import Household
from benchmarks.family_verifiers import without_shared
from benchmarks.played import Played
from benchmarks.rows import half_width
from benchmarks.source_play import DELAY, config_of
from benchmarks.source_worlds import World, drawn
from router_state.events import Judged
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family

FROM = 3000
"""First seed on which nothing was chosen."""
TENANTS, REQUESTS, FIRST = 4, 500, 200
KINDS = ("alike", "half alike", "honest")


def worlds(seed: int, kind: str) -> list[World]:
    """Return what each tenant gets."""
    found = []
    for k in range(TENANTS):
        fair = kind == "honest" or (kind == "half alike" and k % 2 == 1)
        whole = drawn(seed, "honest" if fair else "self-preference")
        rows = slice(k * REQUESTS, (k + 1) * REQUESTS)
        judges = tuple(one[rows] for one in whole.judges)
        found.append(World(whole.x[rows], whole.gold[rows], judges))
    return found


def play(
    name: str, world: World, house: Household, *, gold: float, seed: int, share: bool
) -> Array:
    """Play a tenant's requests; return its gold rewards."""
    config = config_of(world, seed, "on")
    capabilities = {**config.capabilities, "family": FamilyDeclared("all")}
    engine = Played.start(replace(config, capabilities=capabilities))
    member = engine.state.having(Family)
    assert member is not None
    n, told_of = len(world.x), (0, 0)
    asked = np.random.default_rng([seed, int(name[1:])]).random(n) < gold
    chosen = np.zeros(n, np.int64)
    for t in range(n + DELAY):
        if t < n:
            chosen[t] = int(engine.decide(f"r{t}", world.x[t], now=float(t)).model[1:])
        if (i := t - DELAY) >= 0:
            label = float(world.judges[0][i, chosen[i]])
            engine.play(Judged(f"r{i}", label, "judge-0", 1))
            if asked[i]:
                engine.play(Judged(f"r{i}", float(world.gold[i, chosen[i]]), "human", 2))
        if t == 0 or member.is_due(told_of) or t == n + DELAY - 1:
            report = member.reported(name, "")
            house.take_report(report if share else without_shared(report))
            told_of = member.seen
            for told in house.owner.priors_for(name):
                engine.play(told, float(t))
    return np.asarray(world.gold[np.arange(n), chosen])


def one(seed: int, kind: str, gold: float) -> Array:
    """Return what the tenants behind the first one earn, without sharing and with it: shape (2,
    requests)."""
    found = []
    for share in (False, True):
        house = Household()
        rows = [
            play(f"r{k}", world, house, gold=gold, seed=seed, share=share)
            for k, world in enumerate(worlds(seed, kind))
        ]
        found.append(np.mean(rows[1:], axis=0))
    return np.array(found)


@click.command()
@click.option("--seeds", default=30, show_default=True)
@click.option("--from", "first", default=FROM, show_default=True, help="First seed.")
@click.option("--gold", "shares", multiple=True, type=float, help="Share that people label.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS))
def main(*, seeds: int, first: int, shares: Sequence[float], kinds: Sequence[str]) -> None:
    """Compare families that share offsets of judges with the same families that do not."""
    head = "| judges, gold | requests | not shared | shared | shared − not, 95 % | least |"
    click.echo(head + "\n" + "| --- " * 6 + "|")
    for gold in shares or (0.1,):
        for kind in kinds or KINDS:
            found = np.array([one(seed, kind, gold) for seed in range(first, first + seeds)])
            for n in (FIRST, REQUESTS):
                means = found[..., :n].mean(2)
                gains = (means[:, 1] - means[:, 0]).tolist()
                shown = " | ".join(f"{mean:.3f}" for mean in means.mean(0))
                gain = f"{np.mean(gains):+.4f} ± {half_width(gains):.4f} | {min(gains):+.4f}"
                click.echo(f"| {kind}, {gold:.0%} | {n} | {shown} | {gain} |")


if __name__ == "__main__":
    main()
