"""Open the inputs of commands over histories: the history, its contexts, and the priors of
declarations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from doors.console.failures import Failure
from doors.console.session import Session

if TYPE_CHECKING:
    from studies.history.encoded import Contexts
    from studies.history.happened import Happened
    from studies.history.records import History
    from studies.history.rerun import ReadPrior
    from studies.history.skipped import Skipped

Options = dict[str, Any]
"""A command's options by name, as click hands them over."""
from_option = click.option(
    "--from",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of an export, to read instead of Kafka.",
)
WHOLE: Options = {"since": float("-inf"), "until": float("inf"), "offsets": None}
"""No bounds: seconds since the epoch, and offsets of `pb.routes`."""


def part_of(options: Options) -> Options:
    """Return the part of the history that the options select."""
    since = WHOLE["since"] if options["since"] is None else options["since"]
    until = WHOLE["until"] if options["until"] is None else options["until"]
    return {"since": since, "until": until, "offsets": options["offsets"]}


def history_of(session: Session, folder: Path | None, stack: ExitStack) -> History:
    from studies.history.folders import BadFolder, open_folder
    from studies.history.kafka_history import KafkaHistory, MissingTopics
    from studies.history.parquet import MissingPyArrow

    # Entered first, so that it also handles errors of the later reading.
    stack.enter_context(_readable())
    try:
        return (
            open_folder(folder)
            if folder is not None
            else stack.enter_context(KafkaHistory(session.settings))
        )
    except (BadFolder, MissingPyArrow, MissingTopics) as error:
        raise Failure(str(error)) from error


@contextmanager
def _readable() -> Iterator[None]:
    from studies.history.records import BrokenLine

    try:
        yield
    except BrokenLine as error:
        raise Failure(f"{error}; mend that line or leave it out") from error


def no_request(history: History, router_id: str | None, part: Options) -> Failure:
    """Return the error that there is no decision."""
    from studies.history.records import routers_of

    asked = "" if part == WHOLE else " in this part of it"
    of = "" if router_id is None else f" of router {router_id}"
    declared = routers_of(history)
    if not declared:
        hint = ": it declares no router. PB_PREFIX names other topics, --from another export"
    elif router_id is None or router_id in declared:
        hint = "" if asked else " yet"
    else:
        hint = f"; --router names one of: {', '.join(declared[:10])}"
    return Failure(f"the history has no decision{of}{asked}{hint}")


def happened(history: History, router_id: str | None, skipped: Skipped) -> Iterator[Happened]:
    from studies.simulate.past import happened

    yield from happened(history, router_id, skipped)


def contexts_of(session: Session, stack: ExitStack) -> Contexts:
    from studies.simulate.past import contexts_of

    def progress(done: int) -> None:
        click.echo(f"\rEncoding prompts: {done:,}", err=True, nl=False)

    # A carriage return overwrites a line of a terminal, and fills a log file.
    shown = progress if sys.stderr.isatty() else None
    return stack.enter_context(closing(contexts_of(session.settings, progress=shown)))


def prior_reader_of(session: Session) -> ReadPrior:
    from studies.simulate.past import prior_reader_of

    return prior_reader_of(session.settings)
