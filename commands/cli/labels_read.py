"""Read what people are asked to label, for the commands `pbstream labels`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from doors.console.session import Session, run

if TYPE_CHECKING:
    from rich.progress import Progress

    from doors.console.asked_labels import AskedLabels
    from doors.console.wanted_labels import Wanted

by_option = click.option(
    "--by",
    metavar="NAME",
    help="Who labels: NAME stands in the source, as human:NAME; default: nobody is named.",
)


def name_of(by: str | None) -> str | None:
    """Return the name of who labels. Raises UsageError."""
    from doors.console.wanted_labels import NAME

    if by is not None and not NAME.fullmatch(by):
        raise click.UsageError("--by is up to 64 of A-Z a-z 0-9 . _ @ -")
    return by


def asked(session: Session, router_id: str) -> AskedLabels:
    """Read what people are asked about, with a bar that moves."""
    from doors.console.asked_labels import TOPICS, asked_labels
    from doors.console.bus import open_bus

    async def read(progress: Progress) -> AskedLabels:
        task = progress.add_task("reading", total=None)
        async with open_bus(session.settings, *TOPICS) as bus:
            return await asked_labels(
                bus,
                router_id,
                limit=session.settings.gateway_search,
                tell=lambda read: progress.update(task, completed=read),
            )

    with progress_bars() as progress:
        return run(read(progress))


def still_open(session: Session, found: AskedLabels) -> list[Wanted]:
    """Return what is to be labelled, as long as workers remember it."""
    since = time.time() - session.settings.context_ttl
    return found.wanted.open(found.labelling, since=since)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Draw bars on standard error, which go away when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not sys.stderr.isatty()) as bar:
        yield bar
