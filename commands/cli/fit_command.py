"""`pbstream fit`: fit a projection and priors to judged or billed prompts, or priors to a router's
history.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.fit_compared import compare
from commands.cli.fit_explained import explain as explain_fit
from commands.cli.fit_members import fit_members
from commands.cli.fit_shown import figures, show
from commands.cli.replay_history import WHOLE, contexts_of, happened, history_of, no_request
from commands.cli.row_options import reading_of, row_options
from doors.console.failures import Failure
from doors.console.output import print_json
from doors.console.session import Session, json_option, option, pass_session, router_option

if TYPE_CHECKING:
    from streams.settings import Settings
    from studies.warm_start.fit import FitSummary
    from studies.warm_start.judgements import Reading


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, metavar="[JUDGEMENTS] FOLDER", type=click.Path(path_type=Path)
)
@click.option(
    "--from-history", is_flag=True, help="Learn from the topics of a router instead of a file."
)
@click.option(
    "--family",
    metavar="FAMILY",
    help="With --from-history: write what a family knows, for `pbstream families import`.",
)
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="ID",
    help="Routers of the family; default: those whose last declaration names the family.",
)
@click.option(
    "--from",
    "export",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of an export, to read instead of Kafka.",
)
@router_option
@click.option(
    "--encoder",
    metavar="KIND[:NAME]",
    help="Encoder of the prompts: static, onnx, or sentence-transformers:NAME with a folder, an "
    "installed package or a name on the hub; default: that of the settings.",
)
@option(
    "--components",
    click.IntRange(1),
    25,
    "Most components of the projection; a context has one number more.",
)
@option("--ridge", click.FloatRange(min=0, min_open=True), 1.0, "Ridge λ_0 of the priors.")
@click.option(
    "--explain",
    is_flag=True,
    help="Show what the priors are worth, as tables and in FOLDER/worth.html.",
)
@click.option(
    "--compare-encoders",
    is_flag=True,
    help="First say what each encoder is worth on these prompts.",
)
@row_options
@json_option
@pass_session
def fit(
    session: Session,
    /,
    paths: Sequence[Path],
    from_history: bool,
    family: str | None,
    members: Sequence[str],
    export: Path | None,
    router_id: str,
    encoder: str | None,
    components: int,
    ridge: float,
    explain: bool,
    compare_encoders: bool,
    columns: dict[str, str],
    score_range: tuple[float, float] | None,
    as_json: bool,
) -> None:
    """Fit warm-up priors of rewards and costs, and write them into FOLDER as arrays and JSON.

    JUDGEMENTS has a row per answer, as CSV or JSON Lines: the prompt, the model, what the answer
    was worth, from 0 to 1, and what it cost in dollars; one of the two is enough:

    \b
      prompt,model,cost,score
      Why is the sky blue?,small,0.00003,0.7

    \b
      pbstream fit rows.csv priors/chat --explain
      pbstream fit rows.csv priors/chat --column score=rating --score-range 1:5
      PB_PRIORS_PATH=priors pbstream worker
      pbstream models add small --input-price 0.1 --output-price 0.4 --prior priors/chat

    A projection of the prompts' embeddings is fitted beside the priors: principal components, or
    partial least squares where cross-validation says that it predicts better. Workers need the
    same encoder:

    \b
      pbstream fit rows.csv priors/chat --encoder sentence-transformers:my-model
      export PB_ENCODER_BACKEND=sentence-transformers PB_ENCODER_WEIGHTS=my-model

    With --from-history the priors are fitted to a router's own decisions, bills and rewards. They
    serve a new router that has the same contexts:

    \b
      pbstream fit --from-history --router acme.chat priors/chat-2
      pbstream fit --from-history --router acme.chat --from export/ priors/chat-2

    With --family the command writes what the routers of a family know together:

    \b
      pbstream fit --from-history --family support support.json
      pbstream fit --from-history --family support --member chat --member mail support.json
    """
    from studies.warm_start.worth import as_json as worth_as_json
    from studies.warm_start.worth import worth_of

    if len(paths) != (1 if from_history else 2):
        raise click.UsageError(
            "--from-history takes FOLDER alone; --from names an export."
            if from_history
            else "Give JUDGEMENTS and FOLDER."
        )
    if not from_history and (export is not None or family is not None):
        raise click.UsageError(
            "--from and --family say which history: give --from-history as well."
        )
    if family is not None or members:
        fit_members(session, export, family, members, paths[0], as_json=as_json)
        return
    if compare_encoders and from_history:
        raise click.UsageError("--compare-encoders needs JUDGEMENTS with the prompts.")
    if from_history and (columns or score_range or encoder):
        raise click.UsageError("--column, --score-range and --encoder are for JUDGEMENTS.")
    settings = session.settings
    if encoder is not None:
        from streams.encoder.encoder_choice import choose_encoder

        settings = choose_encoder(settings, encoder)
    folder, reading = paths[-1], reading_of(columns, score_range)
    # Checked before anything is fitted.
    if not next(path for path in (folder, *folder.absolute().parents) if path.exists()).is_dir():
        raise click.BadParameter(f"{folder} is a file, or in one", param_hint="FOLDER")
    # Compared before anything is written: the result may be a reason to stop.
    compared = (
        compare(paths[0], reading, settings, encoder, components=components, quiet=as_json)
        if compare_encoders
        else None
    )
    if from_history:
        summary = _fit_history(session, export, router_id, folder, ridge)
    else:
        summary = _fit_file(settings, paths[0], reading, folder, components, ridge)
    worth = worth_of(summary.observed) if explain else None
    if as_json:
        more = {} if worth is None else {"worth": worth_as_json(worth)}
        print_json(
            {
                **figures(summary, folder, settings),
                **more,
                **({} if compared is None else {"encoders": compared}),
            }
        )
    else:
        show(summary, folder, settings, from_history=from_history)
    if worth is not None:
        rows = None if from_history else paths[0]
        explain_fit(worth, folder / "worth.html", rows=rows, quiet=as_json)


def _fit_file(
    settings: Settings,
    judgements: Path,
    reading: Reading,
    folder: Path,
    components: int,
    ridge: float,
) -> FitSummary:
    from streams.encoder.encoder_by_settings import sentences_of
    from studies.warm_start.fit import fit as fit_priors

    # Read with the workers' settings: priors fit the contexts that their encoder makes.
    sentences = sentences_of(settings)
    return fit_priors(
        judgements,
        folder,
        sentences=sentences,
        reading=reading,
        components=components,
        ridge=ridge,
    )


def _fit_history(
    session: Session, export: Path | None, router_id: str, folder: Path, ridge: float
) -> FitSummary:
    from streams.encoder.projections import read_projection
    from studies.history.skipped import Skipped
    from studies.simulate.cases import Cases
    from studies.simulate.observed import NothingObserved, observe
    from studies.simulate.usual_week import TrafficSeen
    from studies.warm_start.fit import fit_observed

    skipped, traffic = Skipped(), TrafficSeen()
    with ExitStack() as stack:
        history = history_of(session, export, stack)
        cases = Cases(
            happened(history, router_id, skipped),
            contexts=contexts_of(session, stack),
            skipped=skipped,
        )
        try:
            observed = observe(traffic.through(cases))
        except NothingObserved as nothing:
            raise (
                # A history without rewards and a wrong router name need different errors.
                Failure(str(nothing)) if cases.decided else no_request(history, router_id, WHOLE)
            ) from None
    for line in skipped.lines():
        click.echo(f"Left out: {line}", err=True)
    if (written := traffic.write(folder)) is not None:
        click.echo(
            f"{written} says what traffic a usual week has: the field `traffic` of a router with a "
            "budget of a period.",
            err=True,
        )
    named = cases.projection
    if named is None:
        return fit_observed(observed, folder, projection=f"history of {router_id}", ridge=ridge)
    # The new folder must be complete: a router that starts from it declares its projection.
    read_projection(named, inside=session.settings.priors_path).save(folder)
    return fit_observed(observed, folder, projection=named.sha256, ridge=ridge)
