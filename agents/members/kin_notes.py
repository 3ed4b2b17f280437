"""Encode and decode the records between families and their members."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator

from agents.group import Note
from router_state.families.family_brought import Brought
from router_state.families.family_kin import Kin
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import MemberPrior, Model, Report
from router_state.families.family_sums import bytes_of
from router_state.instants import utc
from schemas.families import (
    MOST_LISTED,
    FamilyEstimated,
    MemberListed,
    ModelListed,
    ModelSums,
    SideListed,
)
from schemas.kin import KinNoted

LEAST_REQUESTS = 1e-6
"""Least requests of a model that a family knows anything of."""


def report_notes(report: Report, *, now: float) -> Iterator[Note]:
    """Yield a report to a family: a record for each model, each of at most 3 kB at 26
    dimensions."""
    names: list[str | None] = [*report.models]
    first = True
    for name in names or [None]:
        note = KinNoted(
            kind="report",
            router_id=report.family,
            family=report.family,
            member_id=report.member,
            born=report.born,
            n=report.n,
            dimensions=report.d,
            projection=report.projection,
            gives=report.gives,
            takes=report.takes,
            left=report.left,
            seen=report.seen,
            noise=report.noise,
            names=report.names if first else None,
            models=None if name is None else {name: _text(report.models[name])},
            observed_at=utc(now),
        )
        first = False
        yield report.family, note


def report_of(note: KinNoted) -> Report:
    """Invert `report_notes`, for one record."""
    return Report(
        note.family,
        note.member_id,
        note.born,
        note.n,
        note.dimensions or 0,
        note.projection,
        note.gives,
        note.takes,
        note.left,
        note.seen,
        note.noise,
        note.names,
        _models(note),
    )


def prior_note(member: str, prior: MemberPrior, *, now: float) -> Note:
    """Return a family's prior for a member, as a record."""
    note = KinNoted(
        kind="prior",
        router_id=member,
        family=prior.family,
        member_id=member,
        born=prior.born,
        n=prior.n,
        models={name: _text(one) for name, one in prior.models.items()} or None,
        more=prior.more,
        members=prior.members,
        aside=prior.aside,
        slope=prior.slope,
        refused=prior.refused or None,
        noise=prior.noise,
        observed_at=utc(now),
    )
    return member, note


def prior_of(note: KinNoted, *, offset: int) -> MemberPrior:
    """Invert `prior_note`; `offset` is the note's offset on its topic."""
    return MemberPrior(
        note.family,
        note.born,
        note.n,
        _models(note),
        note.more,
        note.members,
        note.aside,
        note.slope,
        note.refused or "",
        note.noise,
        offset,
    )


def _text(model: Model) -> ModelSums:
    rewards, bills = (b64encode(data).decode() for data in model.sides)
    shared = {name: b64encode(data).decode() for name, data in model.shared.items()}
    return ModelSums(rewards=rewards, bills=bills, shared=shared or None)


def _model(sums: ModelSums) -> Model:
    shared = {name: b64decode(data) for name, data in (sums.shared or {}).items()}
    return Model(b64decode(sums.rewards), b64decode(sums.bills), shared)


def _models(note: KinNoted) -> dict[str, Model]:
    return {name: _model(sums) for name, sums in (note.models or {}).items()}


def family_note(owner: FamilyOwner, *, now: float) -> Note:
    """Return a family's key and record; the record of a family that is gone is a tombstone."""
    return owner.name, None if owner.is_done else estimated(owner, now=now)


def estimated(owner: FamilyOwner, *, now: float) -> FamilyEstimated:
    """Return what a family publishes: its estimates and its members."""
    rewards, bills = owner.sides
    counts: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for _, name, model in owner.each():
        for count, data in zip(counts, model.sides, strict=True):
            if data:
                count[name] = count.get(name, 0) + 1
    shared = {name for _, name in owner.shared.stacks}
    names = sorted({*counts[0], *counts[1], *owner.brought, *shared})
    members = sorted(owner.members.items(), key=lambda one: (-one[1].seen[0], one[0]))
    return FamilyEstimated(
        family=owner.name,
        dimensions=owner.d,
        projection=owner.projection,
        members=len(owner.members),
        listed=tuple(
            MemberListed(
                router_id=name,
                gives=one.gives,
                takes=one.takes,
                rewards=one.seen[0],
                weight=round(rewards.weights.get(name, 1.0), 4),
                level=round(rewards.levels.get(name, 0.0), 4),
                aside=name in rewards.aside or name in bills.aside,
            )
            for name, one in members[:MOST_LISTED]
        ),
        models=tuple(
            ModelListed(
                model=name,
                rewards=_side(rewards, name, counts[0].get(name, 0)),
                bills=_side(bills, name, counts[1].get(name, 0)),
                shared=_shared(owner, name),
            )
            for name in names
        ),
        noise=(rewards.noise, bills.noise),
        observed_at=utc(now),
    )


def _side(kin: Kin, name: str, members: int) -> SideListed | None:
    total, scatter = kin.total_of(name), kin.scatter_of(name)
    if total.count <= LEAST_REQUESTS:
        return None
    newcomer = kin.prior_for("", {}, [name])[name]
    apart, *between = kin.apart(name)
    return SideListed(
        members=members,
        apart=apart,
        apart_interval=(between[0], between[1]) if members else None,
        requests=newcomer.count,
        expected=float(total.b[-1]) / total.count,
        knows=b64encode(bytes_of(total)).decode(),
        scatter=(scatter.ridge, scatter.bias),
    )


def _shared(owner: FamilyOwner, name: str) -> dict[str, str] | None:
    known = owner.shared.known_of(name)
    return {name: b64encode(one.pack()).decode() for name, one in known.items()} or None


def brought_of(estimated: FamilyEstimated) -> Brought:
    """Return another family's published estimates in the form in which a family takes them in."""
    models, scatter = {}, {}
    for one in estimated.models:
        sides = one.rewards, one.bills
        sums = [b"" if side is None else b64decode(side.knows) for side in sides]
        shared = {name: b64decode(data) for name, data in (one.shared or {}).items()}
        models[one.model] = Model(sums[0], sums[1], shared)
        ridges = [(1.0, 1.0) if side is None else side.scatter for side in sides]
        scatter[one.model] = ridges[0], ridges[1]
    return Brought(estimated.dimensions, estimated.projection, estimated.noise, models, scatter)
