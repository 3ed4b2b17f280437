"""`pbstream replay --from FILE`: play policies on your own rows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from commands.cli.replay_history import Options, contexts_of, prior_reader_of
from commands.cli.replay_study import scenario_of, tell
from commands.cli.row_options import reading_of
from doors.console.failures import Failure
from doors.console.session import Session
from drawing.numbers import usd

MOST_MODELS = 8
"""Most models that are each played as a policy if no policy is named."""


def show_rows(
    session: Session, path: Path, router_id: str, options: Options, as_json: bool, stack: ExitStack
) -> None:
    """Play a scenario over the rows of a file, and print the result."""
    from studies.history.account import Account
    from studies.simulate.rows import TOKENS, Rows, UnplayableRows
    from studies.simulate.scenario import BadScenario
    from studies.simulate.study import study
    from studies.warm_start.judgements import read_judgements

    judged = read_judgements(path, reading_of(options["columns"], options["score_range"]))
    try:
        rows = Rows(judged, router_id=router_id, budget_usd=options["budget"])
        named = options["policies"] or (
            () if options["scenario"] else ("live", *rows.models[:MOST_MODELS])
        )
        found = study(
            rows,
            scenario_of({**options, "policies": named}),
            contexts=contexts_of(session, stack),
            read_prior=prior_reader_of(session),
            # Nobody knows how likely a row's model was to be chosen.
            compare=False,
            account=Account(),
        )
    except (BadScenario, UnplayableRows) as error:
        raise Failure(f"{path}: {error}") from error
    # Rows have no times.
    found.survey.first = found.survey.last = None
    tell(found, options["report"], as_json)
    if not as_json:
        why = "" if options["budget"] else ", the rows' mean cost (--budget sets another)"
        click.echo(
            f"The budget is {usd(rows.budget_usd)} per request{why}; a list price is a model's "
            f"mean cost for {TOKENS:,} tokens. Policies begin without priors."
        )
