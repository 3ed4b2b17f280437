"""`pbstream replay --from FILE`: play policies on your own rows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from commands.cli.fit_explained import fitted_budget
from commands.cli.model_prior import fitted_in, reference_to
from commands.cli.replay_history import Options, contexts_of, prior_reader_of
from commands.cli.replay_study import scenario_of, tell
from commands.cli.row_options import reading_of
from doors.console.failures import Failure
from doors.console.session import Session
from drawing.numbers import usd
from ground.json_values import Document

MOST_MODELS = 8
"""Most models that are each played as a policy if no policy is named."""


def show_rows(
    session: Session, path: Path, router_id: str, options: Options, as_json: bool, stack: ExitStack
) -> None:
    """Play a scenario over the rows of a file, and print the result."""
    from studies.history.skipped import Skipped
    from studies.simulate.rows import TOKENS, Rows, UnplayableRows
    from studies.simulate.scenario import BadScenario
    from studies.simulate.study import study
    from studies.warm_start.judgements import read_judgements

    judged = read_judgements(path, reading_of(options["columns"], options["score_range"]))
    prior: Path | None = options["prior"]
    budget = options["budget"]
    started = None
    if prior is not None:
        # Where workers would have it: the folder as a router's projection and priors.
        named = {"priors_path": prior.resolve().parent}
        session.settings = session.settings.model_copy(update=named)
        started = _started(prior)
        budget = budget or fitted_budget(prior)
    try:
        rows = Rows(judged, router_id=router_id, budget_usd=budget, started=started)
        policies = options["policies"] or (
            () if options["scenario"] else ("live", *rows.models[:MOST_MODELS])
        )
        found = study(
            rows,
            scenario_of({**options, "policies": policies}),
            contexts=contexts_of(session, stack),
            read_prior=prior_reader_of(session),
            # Nobody knows how likely a row's model was to be chosen.
            weighted=False,
            skipped=Skipped(),
        )
    except (BadScenario, UnplayableRows) as error:
        raise Failure(f"{path}: {error}") from error
    # Rows have no times.
    found.survey.first = found.survey.last = None
    tell(found, options["report"], as_json)
    if not as_json:
        why = (
            ""
            if options["budget"]
            else f", at which routing gains most by {prior} (--budget sets another)"
            if budget
            else ", the rows' mean cost (--budget sets another)"
        )
        begin = (
            "Policies begin without priors: --prior names a folder of `pbstream fit`."
            if prior is None
            else f"Policies begin with {prior}. If it was fitted on these rows, it knows their "
            "answers; `pbstream fit --explain` holds out what it predicts."
        )
        click.echo(
            f"The budget is {usd(rows.budget_usd)} per request{why}; a list price is a model's "
            f"mean cost for {TOKENS:,} tokens. {begin}"
        )


def _started(prior: Path) -> Document:
    """Return the fields of a declaration that a folder's priors and projection fill."""
    from streams.priors.fitted_priors import fields_for_wire, load_priors

    priors = load_priors(prior)
    known = dict.fromkeys((*priors.models, *(() if priors.costs is None else priors.costs.models)))
    declared: Document = {
        "models": {model: fields_for_wire(priors, model) for model in known},
        "dimensions": priors.dimensions,
    }
    return declared if fitted_in(prior) is None else declared | {"projection": reference_to(prior)}
