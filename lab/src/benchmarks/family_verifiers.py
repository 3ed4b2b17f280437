"""Families whose members have a verifier: what it gains to share what verdicts mean.

    python -m benchmarks.family_verifiers [--seeds 30] [--labels 0.1] [--kind alike]

Five tenants of one drawn world come one after another, with 400 requests each. Verifiers pass .9 of
the right answers and stop .8 of the wrong ones. Of half alike tenants every second one has another
verifier, and of unlike tenants each has one that is drawn. In pairs stand the same family without
the numbers of verifiers in its reports, and with them. The first tenant is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click
import numpy as np
from msgspec import structs

from benchmarks.arena import Array
from benchmarks.attempt_worlds import Judged, drawn
from benchmarks.attempts import BILLS_LATE, LABELS_LATE, Dealt, _bill, _called, started
from benchmarks.family_play import Household
from benchmarks.played import Played
from benchmarks.rows import half_width
from router_state.families.family_declared import FamilyDeclared
from router_state.families.family_member import Family
from router_state.families.family_reports import Model, Report
from router_state.record import RequestRecord

HELD_BACK = 2000
"""First seed on which nothing was chosen."""
TENANTS, REQUESTS, FIRST = 5, 400, 200
FEE = 0.01
"""Dollars of a verdict, in budgets."""
KINDS = ("alike", "half alike", "unlike")
OTHERS = ("coin", "fair", "lenient coin", "uneven", "favours models", "difficulty alone", "good")
"""Verifiers of tenants that are unlike."""


def verifier_of(kind: str, tenant: int, seed: int) -> str:
    """Return the kind of a tenant's verifier."""
    if kind == "alike":
        return "good"
    drawn_one = str(np.random.default_rng([61, seed, tenant]).choice(OTHERS))
    return drawn_one if kind == "unlike" or tenant % 2 else "good"


def without_shared(report: Report) -> Report:
    """Return a report without the numbers that capabilities share."""
    bare = {name: Model(one.rewards, one.bills) for name, one in report.models.items()}
    return structs.replace(report, models=bare)


class Member:
    """A tenant's router, in its family."""

    def __init__(
        self, name: str, dealt: Dealt, house: Household, seed: int, *, share: bool
    ) -> None:
        self.name, self.dealt, self.house, self.share = name, dealt, house, share
        fee = FEE * dealt.judged.budget
        engine = started(dealt, fee=fee, exact=False, attempts=2, seed=seed)
        config = engine.state.config
        capabilities = {**config.capabilities, "family": FamilyDeclared("all")}
        self.engine = Played.start(replace(config, capabilities=capabilities))
        self.reported, self.fee = (0, 0), fee
        self.exchange(0.0)

    def exchange(self, now: float) -> None:
        """Report, and take over what the others say."""
        member = self.engine.state.having(Family)
        assert member is not None
        if now and not member.is_due(self.reported):
            return
        self.house.take_report(self.said(member.reported(self.name, "")))
        self.reported = member.seen
        for told in self.house.owner.priors_for(self.name):
            self.engine.play(told, now)

    def said(self, report: Report) -> Report:
        """Return a report with the numbers of verifiers, or without."""
        return report if self.share else without_shared(report)

    def play(self) -> Array:
        """Play all requests; return rewards and dollars in budgets, shape (2, requests)."""
        dealt, engine = self.dealt, self.engine
        n, column = len(dealt.contexts), {name: k for k, name in enumerate(dealt.judged.models)}
        found, made = np.zeros((2, n)), list[RequestRecord]()
        for i in range(n + LABELS_LATE):
            if BILLS_LATE <= i < n + BILLS_LATE:
                _bill(engine, dealt, made[i - BILLS_LATE], i - BILLS_LATE, column)
            if i >= LABELS_LATE and dealt.labelled[i - LABELS_LATE]:
                label = float(found[0, i - LABELS_LATE])
                engine.learn(str(i - LABELS_LATE), reward=label)
            self.exchange(float(i))
            if i >= n:
                continue
            made.append(engine.decide(str(i), dealt.contexts[i], now=float(i)))
            called, looked = _called(dealt, made[i], i, column)
            found[0, i] = dealt.rewards[i, called[-1]]
            found[1, i] = dealt.costs[i, called].sum() + self.fee * looked
        found[1] /= dealt.judged.budget
        return found


def tenants(seed: int, kind: str, labels: float) -> list[Dealt]:
    """Return what each tenant gets."""
    whole, found = drawn(seed), []
    for k in range(TENANTS):
        rows = slice(k * REQUESTS, (k + 1) * REQUESTS)
        part = Judged(
            **{
                **{f: getattr(whole, f) for f in Judged.__dataclass_fields__},
                "contexts": whole.contexts[rows],
                "rewards": whole.rewards[rows],
                "costs": whole.costs[rows],
            }
        )
        verifier = verifier_of(kind, k, seed)
        found.append(Dealt.draw(part, verifier, labels=labels, seed=TENANTS * seed + k))
    return found


def one(seed: int, kind: str, labels: float) -> Array:
    """Return what the tenants behind the first one earn and spend, without sharing and with it:
    shape (2, 2, requests)."""
    dealt, found = tenants(seed, kind, labels), []
    for share in (False, True):
        house = Household()
        rows = [
            Member(f"r{k}", part, house, seed, share=share).play() for k, part in enumerate(dealt)
        ]
        found.append(np.mean(rows[1:], axis=0))
    return np.array(found)


@click.command()
@click.option("--seeds", default=30, show_default=True)
@click.option("--from", "first", default=HELD_BACK, show_default=True, help="First seed.")
@click.option("--labels", "shares", multiple=True, type=float, help="Share of labelled requests.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS))
def main(*, seeds: int, first: int, shares: Sequence[float], kinds: Sequence[str]) -> None:
    """Compare families that share what verdicts mean with the same families that do not."""
    head = "| verifiers, labelled | requests | not shared | shared | shared − not, 95 % | least |"
    click.echo(head + "\n" + "| --- " * 6 + "|")
    for labels in shares or (0.1, 1.0):
        for kind in kinds or KINDS:
            found = np.array([one(seed, kind, labels) for seed in range(first, first + seeds)])
            for n in (FIRST, REQUESTS):
                means = found[..., :n].mean(3)
                shown = [f"{reward:.3f} ({spent:.2f})" for reward, spent in means.mean(0)]
                gains = (means[:, 1, 0] - means[:, 0, 0]).tolist()
                gain = f"{np.mean(gains):+.4f} ± {half_width(gains):.4f} | {min(gains):+.4f}"
                click.echo(f"| {kind}, {labels:.0%} | {n} | {' | '.join(shown)} | {gain} |")


if __name__ == "__main__":
    main()
