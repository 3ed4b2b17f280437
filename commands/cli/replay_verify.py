"""`pbstream replay --verify`: make every decision again and compare."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from commands.cli.replay_history import (
    Options,
    contexts_of,
    happened,
    no_request,
    part_of,
    prior_reader_of,
)
from doors.console.failures import Failure
from doors.console.output import console, print_json
from doors.console.session import Session

if TYPE_CHECKING:
    from studies.history.records import History


def show_verdict(
    session: Session,
    history: History,
    router_id: str | None,
    options: Options,
    as_json: bool,
    stack: ExitStack,
) -> None:
    from studies.history.differences import as_json as verdict_json
    from studies.history.differences import summary, tables
    from studies.history.rerun import Rerun
    from studies.history.skipped import Skipped
    from studies.history.verify import Part, verify

    skipped = Skipped()
    rerun = Rerun(
        contexts=contexts_of(session, stack),
        rank_of=session.settings.source_rank,
        read_prior=prior_reader_of(session),
        skipped=skipped,
    )
    verdict = verify(happened(history, router_id, skipped), rerun, part=Part(**part_of(options)))
    if as_json:
        print_json({**verdict_json(verdict), "skipped": skipped.counts})
    else:
        for line in [*summary(verdict), *skipped.lines()]:
            click.echo(line)
        # The first difference explains the later ones.
        for difference in list(verdict.differences.values())[:1]:
            for shown in tables(difference):
                console().print(shown)
    # A history that proves nothing must not exit with success.
    if not verdict.compared and not verdict.unprovable:
        raise no_request(history, router_id, part_of(options))
    if not verdict.holds:
        raise Failure("history was not reproduced.")
