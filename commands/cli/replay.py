"""`pbstream replay`: decide a history again, under other conditions, or into other topics."""

from __future__ import annotations

import gc
import re
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.cli.replay_history import Options, history_of, part_of
from commands.cli.replay_into import play_into
from commands.cli.replay_rows import show_rows
from commands.cli.replay_study import show_study
from commands.cli.replay_verify import show_verdict
from commands.cli.row_options import row_options
from doors.console.failures import Failure
from doors.console.session import Session, json_option, option, pass_session, router_option

if TYPE_CHECKING:
    from studies.history.records import History


def _time(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time such as 2026-11-21T09:30:00Z") from None
    # A time without a zone is UTC, as everything that this service writes.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _range(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not first.isdigit() or (last and not last.isdigit()):
        raise click.BadParameter(f"{value!r} is not a range of offsets such as 1000:2000")
    return int(first), int(last) if last else 2**63


def _prefix(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise click.BadParameter(f"{value!r} is not a prefix of topics such as test.")
    return value


EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""Path of a file that exists, such as a scenario."""


@click.command()
@click.option(
    "--from",
    "folder",
    type=click.Path(exists=True, path_type=Path),
    help="An export's folder instead of Kafka, or a file of rows: prompt, model, cost, score.",
)
@row_options
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="With a file of rows: dollars per request; default: that of --prior, or the rows' mean "
    "cost.",
)
@click.option(
    "--prior",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="With a file of rows: folder that `pbstream fit` wrote. The router begins with its "
    "priors; its budget is the one at which `fit --explain` saw routing gain most.",
)
@click.option(
    "--verify", "verifying", is_flag=True, help="Decide everything again and compare with history."
)
@click.option("--scenario", type=EXISTING_FILE, help="YAML file with what shall be different.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Policy to play: paper, live, declared, recorded, random, or a model.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write HTML, and JSON and CSV beside it.",
)
@click.option(
    "--export",
    "exported",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write the history to.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    show_default=True,
    help="With --export: form of the files.",
)
@click.option(
    "--into",
    metavar="PREFIX",
    callback=_prefix,
    help="Play the history into topics of another prefix, where workers decide it.",
)
@option(
    "--speed",
    click.FloatRange(min=0),
    1.0,
    "With --into: speed relative to history; 0: full speed.",
)
@click.option(
    "--since", callback=_time, metavar="TIME", help="Only what was decided at or after this time."
)
@click.option(
    "--until", callback=_time, metavar="TIME", help="Only what was decided before this time."
)
@click.option(
    "--offsets",
    callback=_range,
    metavar="FIRST:LAST",
    help="Only decisions at these offsets of pb.routes.",
)
@click.option("--all-routers", is_flag=True, help="With --verify: verify every router.")
@router_option
@json_option
@pass_session
def replay(
    session: Session, /, as_json: bool, router_id: str, all_routers: bool, **options: Any
) -> None:
    """Replay history: verify its decisions, or ask what would have happened otherwise.

    \b
      pbstream replay --verify                       # the same settings: every decision the same?
      pbstream replay --policy paper --policy live   # who would have done better?
      pbstream replay --scenario price-cut.yaml --report cut.html
      pbstream replay --export history/              # keep it; later: --from history/
      pbstream replay --from rows.csv --prior priors/chat   # on rows of your own, without Kafka
      pbstream replay --scenario price-cut.yaml --into test. --speed 10

    History is only ever read. Exit code 1 with --verify: a decision came out otherwise, or can't be
    verified.
    """
    # A replay makes millions of objects without cycles, which the garbage collector would scan for
    # nothing.
    gc.set_threshold(1_000_000, 20, 100)
    _check(options)
    # Consumers, files and encoder threads that the parts open are closed here, however the command
    # ends.
    with ExitStack() as stack:
        if options["folder"] is not None and options["folder"].is_file():
            show_rows(session, options["folder"], router_id, options, as_json, stack)
            return
        history = history_of(session, options["folder"], stack)
        if options["exported"] is not None:
            _export(history, options)
        elif options["verifying"]:
            show_verdict(
                session, history, None if all_routers else router_id, options, as_json, stack
            )
        elif options["into"] is not None:
            play_into(session, history, router_id, options, stack)
        else:
            show_study(session, history, router_id, options, as_json, stack)


def _check(options: Options) -> None:
    """Refuse options that exclude each other."""
    _check_rows(options)
    modes = {
        "--verify": options["verifying"],
        "--export": options["exported"] is not None,
        "--into": options["into"] is not None,
    }
    chosen = [mode for mode, given in modes.items() if given]
    if len(chosen) > 1:
        raise click.UsageError("choose one of --verify, --export and --into")
    mode = chosen[0] if chosen else ""
    played, reported = (
        options["scenario"] is not None,
        options["report"] is not None or bool(options["policies"]),
    )
    if mode in ("--verify", "--export") and (played or reported):
        raise click.UsageError(
            f"{mode} takes the history as it is: no --scenario, --policy or --report"
        )
    report = options["report"]
    if report is not None and not report.parent.is_dir():
        raise click.BadParameter(f"folder {report.parent} does not exist", param_hint="--report")
    if mode == "--into" and reported:
        raise click.UsageError("with --into the workers decide: no --policy or --report")
    if mode == "--export" and options["offsets"] is not None:
        raise click.UsageError("--export goes by time: --since and --until, no --offsets")


def _check_rows(options: Options) -> None:
    of_rows = ("columns", "score_range", "budget", "prior")
    of_histories = ("verifying", "exported", "into", "since", "until", "offsets")
    rows = options["folder"] is not None and options["folder"].is_file()
    if not rows and any(options[name] for name in of_rows):
        raise click.UsageError(
            "--column, --score-range, --budget and --prior are for a file of rows: --from FILE"
        )
    if rows and any(options[name] not in (None, False) for name in of_histories):
        raise click.UsageError(
            "rows are not a service's history: no --verify, --export, --into, --since, --until or "
            "--offsets"
        )


def _export(history: History, options: Options) -> None:
    from studies.history.folders import BadFolder, export
    from studies.history.parquet import MissingPyArrow

    folder, part = options["exported"], part_of(options)
    try:
        written = export(
            history, folder, form=options["form"], since=part["since"], until=part["until"]
        )
    except (BadFolder, MissingPyArrow) as error:
        raise Failure(str(error)) from error
    if not written:
        raise Failure("nothing to export: the topics hold no record in this part of the history.")
    click.echo(
        f"{written:,} records written to {folder}; replay them with: pbstream replay --from "
        f"{folder}"
    )
