"""`pbstream fit --family`: estimate a family from the histories of several routers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.replay_history import contexts_of, happened, history_of
from doors.console.failures import Failure
from doors.console.output import print_json
from doors.console.session import Session
from ground.files.atomic_file import replacing
from schemas.event import encode

if TYPE_CHECKING:
    from router_state.families.family_reports import Report


def fit_members(
    session: Session,
    export: Path | None,
    family: str | None,
    members: Sequence[str],
    path: Path,
    *,
    as_json: bool,
) -> None:
    """Fit a family to its members' histories and write the estimates into a file, see `pbstream
    fit`.
    """
    if family is None:
        raise click.UsageError("--member is of a family: give --family as well.")
    from studies.history.records import routers_of
    from studies.history.skipped import Skipped
    from studies.simulate.cases import Cases
    from studies.simulate.fit_family import Priced, fit_family, report_of
    from studies.simulate.verdicts_seen import VerdictsSeen

    skipped = Skipped()
    reports: list[Report] = []
    projections: dict[str, str] = {}
    with ExitStack() as stack:
        history = history_of(session, export, stack)
        contexts = contexts_of(session, stack)
        for router_id in members or routers_of(history):
            priced, verdicts = Priced(), VerdictsSeen(session.settings.source_rank)
            events = verdicts.through(happened(history, router_id, skipped))
            cases = Cases(events, contexts=contexts, skipped=skipped)
            noted = verdicts.cases(priced.through(cases))
            report = report_of(family, router_id, noted, priced, verdicts)
            if report is not None and (members or priced.family == family):
                reports.append(report)
                named = cases.projection
                projections[router_id] = "" if named is None else named.sha256
    for line in skipped.lines():
        click.echo(f"Left out: {line}", err=True)
    if not reports:
        raise Failure(
            f"no router of the history names family {family} and has 20 rewards or bills: name "
            "its routers with --member"
        )
    if len({(one.d, projections[one.member]) for one in reports}) > 1:
        raise Failure(
            "the routers have contexts of several projections, and can't be one family: "
            + ", ".join(f"{one.member} {one.d} dimensions" for one in reports)
        )
    projection = projections[reports[0].member]
    known = fit_family(family, reports, projection=projection, now=time.time())
    with replacing(path) as part:
        part.write_bytes(encode(known.model_copy(update={"listed": ()})))
    if as_json:
        print_json(
            {"family": family, "members": [one.member for one in reports], "file": str(path)}
        )
    else:
        click.echo(
            f"{path} has what {len(reports)} routers know of {len(known.models)} models: "
            f"`pbstream families import {path}`."
        )
