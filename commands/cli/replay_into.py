"""`pbstream replay --into`: play the history, with or without a scenario, into workers of another
prefix.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from commands.cli.replay_history import Options, contexts_of, happened, no_request, part_of
from commands.cli.replay_study import scenario_of
from doors.console.failures import Failure
from doors.console.session import Session

if TYPE_CHECKING:
    from studies.history.happened import Declared
    from studies.history.records import History
    from studies.simulate.cases import Case
    from studies.simulate.play import Player, Progress


def play_into(
    session: Session, history: History, router_id: str, options: Options, stack: ExitStack
) -> None:
    from streams.log.service_topics import create_topics
    from streams.settings import group_of
    from studies.history.skipped import Skipped
    from studies.simulate.case_file import CaseFile
    from studies.simulate.cases import Cases
    from studies.simulate.play import NoWorker, Player, SamePrefix
    from studies.simulate.scenario import BadScenario
    from studies.simulate.study import NoRequest, survey, world_of
    from studies.simulate.target import DeclarationRefused

    source, scenario, skipped = session.settings, scenario_of(options), Skipped()
    read = happened(history, router_id, skipped)
    cases = Cases(read, contexts=contexts_of(session, stack), skipped=skipped, **part_of(options))
    # Written to disk by the first pass: the survey needs the whole history before the first request
    # is played.
    kept = stack.enter_context(CaseFile())

    def show(progress: Progress) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{progress.decided:,} of {found.requests:,} decided", err=True, nl=False)

    prefix = options["into"]
    # Another group as well, so that workers of the two prefixes share nothing.
    target = source.model_copy(update={"prefix": prefix, "app_id": group_of(prefix)})
    try:
        found = survey(kept.keep(cases), scenario)
        player = Player(
            world_of(scenario, found),
            found.outcomes,
            router_id=router_id,
            source=source,
            target=target,
            speed=options["speed"],
            progress=show,
        )
        asyncio.run(create_topics(target))
        done = _run(player, iter(kept))
    except NoRequest:
        raise no_request(history, router_id, part_of(options)) from None
    except (BadScenario, DeclarationRefused, NoWorker, SamePrefix) as error:
        raise Failure(str(error)) from error
    click.echo(
        f"{done.requests:,} requests sent, {done.already:,} were there before; {done.decided:,} "
        f"decided, {done.refused:,} refused; "
        f"{done.bills:,} bills and {done.rewards:,} rewards sent."
    )
    for line in skipped.lines():
        click.echo(f"Left out: {line}")


def _run(player: Player, cases: Iterator[Case | Declared]) -> Progress:
    try:
        return asyncio.run(player.play(cases))
    except KeyboardInterrupt:
        raise Failure(
            f"paused after {player.state.decided:,} decisions; the same command goes on."
        ) from None
