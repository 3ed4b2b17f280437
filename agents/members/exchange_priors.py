"""Apply reports of members to their families, and priors of families to their members. A router
that joins a family gets a prior for its models before its first request; one that leaves says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from msgspec import structs

from agents.group import Answers, Note
from agents.members.kin_notes import (
    brought_of,
    family_note,
    prior_note,
    prior_of,
    report_notes,
    report_of,
)
from agents.members.one_by_one import OneByOne
from agents.partition.lane import SECONDS_AT_ONCE
from agents.partition.partition import Partition
from agents.table import keys
from ground.boundary import undoing
from ground.messages import Record
from router_state.config import RouterConfig
from router_state.engine import Engine
from router_state.errors import WrongFamily
from router_state.families.family_member import Family
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_reports import MemberPrior, Report
from schemas.event import MalformedEvent, decode_keyed
from schemas.kin import KinNoted
from schemas.reasons import Reason

WELCOME_SECONDS = 1.0
"""Longest time that a declaration waits for the family's prior: requests of a router that is not
declared yet wait for two seconds.
"""


class ExchangePriors(OneByOne):
    """Apply reports of members to their families, and priors of families to their members.

    Reads `pb.kin` (key: the recipient). Writes families and routers to `router_states`, and priors
    for new members to `pb.kin`. Reports and priors are numbered, so a repeated or late one changes
    nothing. Dead letters: all reasons of `KinNoted`, `wrong_partition`, `wrong_prior`,
    `wrong_family` for estimates that another family sent.
    """

    __slots__ = ()
    name = "kin"

    def _apply(self, message: Record, partition: Partition, answers: Answers) -> None:
        note = decode_keyed(KinNoted, key=message.key, value=message.value)
        if not partition.admit(message, note.router_id, answers):
            return
        if note.kind == "report":
            answers.notes += _take_report(report_of(note), partition)
        elif note.kind == "brought":
            if note.brought is None:
                raise MalformedEvent(Reason.MISSING_FIELD, "brought is missing")
            owner = partition.families.owner(note.family)
            owner.bring(brought_of(note.brought))
            partition.families.dirty.add(note.family)
            answers.notes.append(family_note(owner, now=partition.clock()))
        else:
            _take_over(note.member_id, prior_of(note, offset=message.offset), partition)


def _take_report(report: Report, partition: Partition) -> list[Note]:
    """Apply a report; return the prior for a newcomer, which is sent at once."""
    families, now = partition.families, partition.clock()
    owner = families.owner(report.family)
    try:
        owner.take_report(report)
    except WrongFamily as error:
        refused = MemberPrior(report.family, report.born, report.n + 1, refused=str(error))
        return [prior_note(report.member, refused, now=now)]
    families.dirty.add(report.family)
    if report.left:
        return [family_note(owner, now=now)]
    if report.member in owner.waiting and not any(report.seen):
        return [prior_note(report.member, one, now=now) for one in owner.priors_for(report.member)]
    return []


def _take_over(router_id: str, prior: MemberPrior, partition: Partition) -> None:
    if not partition.families.greeted(router_id, prior) and router_id in partition.routers:
        partition.routers.apply(router_id, prior, now=partition.clock()).accepted()


async def report_and_estimate(partition: Partition) -> None:
    """Send the due reports of members, estimate the families that are due, and send priors to
    members. Raises Gone."""
    families, aside = partition.families, partition.aside
    while families.due:
        async with partition.lane.group() as answers:
            answers.notes += _report(partition)
        await asyncio.sleep(0)
    for name in families.names:
        if not aside.skips("estimate", keys.FAMILY, name):
            await _estimate(partition, name)
            await _send_priors(partition, name)


def _report(partition: Partition) -> list[Note]:
    """Return as many due reports as fit into the event loop's time and a record batch."""
    found: list[Note] = []
    families, routers, aside = partition.families, partition.routers, partition.aside
    began = time.perf_counter()
    while families.due and time.perf_counter() - began < SECONDS_AT_ONCE:
        router_id = next(iter(families.due))
        del families.due[router_id]
        if aside.skips("share", keys.HEAD, router_id):
            continue
        with aside.trying("share", keys.HEAD, router_id):
            if (engine := routers.engine(router_id)) is not None:
                found += _report_router(partition, router_id, engine)
    return found


def _report_router(partition: Partition, router_id: str, engine: Engine) -> list[Note]:
    member = engine.state.having(Family)
    if member is None or member.place.refused:
        return []
    partition.families.reported[router_id] = member.seen
    report = member.reported(router_id, projection_of(engine.state.config, partition))
    return list(report_notes(report, now=partition.clock()))


async def _estimate(partition: Partition, name: str) -> None:
    """Estimate a family anew if that is due, beside the event loop, and publish it."""
    families, aside = partition.families, partition.aside
    owner, estimating = families.owner(name), None
    with aside.trying("estimate", keys.FAMILY, name):
        if owner.is_due:
            estimating = owner.estimating()
            await asyncio.to_thread(estimating.run)
    if estimating is None or aside.skips("estimate", keys.FAMILY, name):
        return
    async with partition.lane.group() as answers:
        # A group that failed meanwhile has undone what the family had heard.
        if name in families.names and families.owner(name) is owner:
            owner.take(estimating)
            families.dirty.add(name)
            answers.notes.append(family_note(owner, now=partition.clock()))


async def _send_priors(partition: Partition, name: str) -> None:
    """Send the priors for which members of a family wait."""
    families, aside = partition.families, partition.aside
    while name in families.names and families.owner(name).waiting:
        failed = True
        async with partition.lane.group() as answers:
            with (
                aside.trying("estimate", keys.FAMILY, name),
                undoing(partial(families.forget, name)),
            ):
                answers.notes += _next_priors(families.owner(name), partition)
                families.dirty.add(name)
                failed = False
        if failed:
            return
        await asyncio.sleep(0)


def _next_priors(owner: FamilyOwner, partition: Partition) -> list[Note]:
    found: list[Note] = []
    now, began = partition.clock(), time.perf_counter()
    while owner.waiting and time.perf_counter() - began < SECONDS_AT_ONCE:
        member = next(iter(owner.waiting))
        found += [prior_note(member, one, now=now) for one in owner.priors_for(member)]
    return found


def member_of(partition: Partition, router_id: str) -> str | None:
    """Return the family of which a router is a member; None: of none."""
    engine = partition.routers.engine(router_id)
    member = None if engine is None else engine.state.having(Family)
    return None if member is None else member.declared.name


async def welcome(partition: Partition, joining: Iterable[tuple[str, RouterConfig]]) -> None:
    """Ask the families of routers that are about to be declared for priors, and wait for the priors
    for `WELCOME_SECONDS` at most. Raises Gone.
    """
    waits = []
    async with partition.lane.group() as answers:
        for router_id, config in joining:
            report = _first_report(router_id, config, partition)
            answers.notes += report_notes(report, now=partition.clock())
            waits.append(partition.families.welcome(router_id).wait())
    with suppress(TimeoutError):
        async with asyncio.timeout(WELCOME_SECONDS):
            await asyncio.gather(*waits)


def unwelcome(partition: Partition, joining: Iterable[tuple[str, RouterConfig]]) -> list[Note]:
    """Return the last reports of routers that have asked for a prior, and whose declaration was
    refused."""
    found: list[Note] = []
    for router_id, config in joining:
        if partition.families.take_welcome(router_id) is not None:
            report = structs.replace(_first_report(router_id, config, partition), left=True)
            found += report_notes(report, now=partition.clock())
    return found


def first_priors(partition: Partition, router_id: str) -> list[MemberPrior]:
    """Return the family's records for a new member. Raises WrongFamily."""
    priors = partition.families.take_welcome(router_id) or []
    for prior in priors:
        if prior.refused:
            raise WrongFamily(prior.refused)
    return priors


def _first_report(router_id: str, config: RouterConfig, partition: Partition) -> Report:
    declared = config.capabilities[Family.name]
    return Report(
        declared.name,
        router_id,
        config.offset,
        0,
        config.dimensions,
        projection_of(config, partition),
        declared.gives,
        declared.takes,
        names=tuple(config.models),
    )


def projection_of(config: RouterConfig, partition: Partition) -> str:
    """Return the checksum of the projection that makes a router's contexts from prompts; "": the
    worker has none."""
    if config.projection is not None:
        return config.projection.sha256
    encoder = partition.ports.encoder
    return "" if encoder is None else encoder.projections.get(config.dimensions, "")


def leaving_family(partition: Partition, router_id: str, family: str | None) -> list[Note]:
    """Return a router's last report to its family if its next declaration names another one, or
    none.
    """
    engine = partition.routers.engine(router_id)
    member = None if engine is None else engine.state.having(Family)
    if member is None or engine is None or member.declared.name == family:
        return []
    partition.families.gone(router_id)
    projection = projection_of(engine.state.config, partition)
    report = member.reported(router_id, projection, left=True)
    return list(report_notes(report, now=partition.clock()))
