"""`pbstream replay --scenario` and `--policy`: play what-if studies, as a table, files and a
report.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
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
from doors.console.output import console, print_json, table
from doors.console.session import Session

if TYPE_CHECKING:
    from studies.history.records import History
    from studies.simulate.scenario import Scenario
    from studies.simulate.study import Study


def scenario_of(options: Options) -> Scenario:
    from studies.simulate.scenario import BadScenario, Scenario, load_scenario

    try:
        scenario = Scenario() if options["scenario"] is None else load_scenario(options["scenario"])
        if options["policies"]:
            # Validated again with the named policies: a plain copy would not check their names.
            body = scenario.model_dump()
            scenario = Scenario.model_validate({**body, "policies": list(options["policies"])})
    except BadScenario as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--policy") from error
    return scenario


def show_study(
    session: Session,
    history: History,
    router_id: str,
    options: Options,
    as_json: bool,
    stack: ExitStack,
) -> None:
    from studies.history.skipped import Skipped
    from studies.simulate.scenario import BadScenario
    from studies.simulate.study import NoRequest, study

    skipped = Skipped()
    try:
        found = study(
            happened(history, router_id, skipped),
            scenario_of(options),
            contexts=contexts_of(session, stack),
            read_prior=prior_reader_of(session),
            **part_of(options),
            skipped=skipped,
        )
    except NoRequest:
        raise no_request(history, router_id, part_of(options)) from None
    except BadScenario as error:
        raise Failure(str(error)) from error
    tell(found, options["report"], as_json)


def tell(found: Study, report: Path | None, as_json: bool) -> None:
    """Print a study, and write its report if asked for."""
    from studies.simulate.figures import figures

    if report is not None:
        _write(found, report)
    if as_json:
        print_json(figures(found))
    else:
        _show(found, report)


def _write(found: Study, path: Path) -> None:
    import orjson

    from studies.simulate.figures import figures, phases_csv, series_csv
    from studies.simulate.study_page import render

    path.write_text(render(found), encoding="utf-8")
    path.with_suffix(".json").write_bytes(
        orjson.dumps(figures(found), option=orjson.OPT_INDENT_2) + b"\n"
    )
    path.with_suffix(".phases.csv").write_text(phases_csv(found), encoding="utf-8")
    path.with_suffix(".series.csv").write_text(series_csv(found), encoding="utf-8")


def _show(found: Study, report: Path | None) -> None:
    from studies.simulate.answer import answer
    from studies.simulate.describe import short
    from studies.simulate.figures import models_of, phase_labels

    for line in answer(found):
        click.echo(line)
    models = models_of(found)
    guessed = ("guessed",) if found.survey.without_outcomes else ()
    columns = (
        "phase",
        "policy",
        "requests",
        "reward",
        "$/request",
        "÷ budget",
        *guessed,
        *map(short, models),
    )
    shown = table(*columns, title=found.scenario.name)
    for phase, label in enumerate(phase_labels(found)):
        for name, run in found.runs.items():
            bucket = run.track.phases[phase]
            if bucket.requests:
                numbers = (
                    f"{value:.4g}" if value is not None else "–"
                    for value in (bucket.mean_reward, bucket.mean_cost_usd, bucket.cost_over_budget)
                )
                shares = (f"{bucket.calls.get(model, 0) / bucket.requests:.0%}" for model in models)
                guesses = (f"{bucket.modelled / bucket.requests:.0%}",) if guessed else ()
                shown.add_row(label, name, f"{bucket.requests:,}", *numbers, *guesses, *shares)
    console().print(shown)
    for line in found.skipped.lines():
        click.echo(f"Left out: {line}")
    rate = sum(run.track.requests for run in found.runs.values()) / max(found.seconds, 1e-9)
    click.echo(f"{found.survey.requests:,} requests, {rate:,.0f} decisions per second.")
    verdicts: dict[str, list[str]] = {}
    for name, run in found.runs.items():
        # Off-policy estimates need propensities; a history without any has none.
        if run.reward.weight.n:
            values = "; ".join(f"{key} {value}" for key, value in run.reward.estimates().items())
            told = f": {values}" if values else ""
            verdicts.setdefault(run.reward.verdict(), []).append(f"{name}{told}")
    for verdict, policies in verdicts.items():
        click.echo(f"Reward by history's own evidence, {'; '.join(policies)}. {verdict}.")
    if report is not None:
        click.echo(f"Report: {report}")
