"""Let a router join a family, with the family's prior for its models before its first request, and
let it leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from msgspec import structs

from agents.group import Note
from agents.members.kin_notes import report_notes
from agents.partition.partition import Partition
from router_state.config import RouterConfig
from router_state.errors import WrongFamily
from router_state.families.family_member import Family
from router_state.families.family_reports import MemberPrior, Report

WELCOME_SECONDS = 1.0
"""Longest time that a declaration waits for the family's prior: requests of a router that is not
declared yet wait for two seconds.
"""


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
