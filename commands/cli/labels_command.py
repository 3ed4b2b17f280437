"""`pbstream labels`: what people are asked to label, their labels, and the files of labelling
tools.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

import click
import orjson

from commands.cli.row_options import low_and_high
from commands.cli.suggesting import Suggesting
from doors.console.output import console, print_json, table
from doors.console.session import (
    Session,
    answered,
    json_option,
    pass_session,
    router_option,
    run,
)

if TYPE_CHECKING:
    from rich.progress import Progress

    from doors.console.asked_labels import AskedLabels
    from doors.console.wanted_labels import Wanted
    from doors.integrations.label_scale import Scale
    from doors.integrations.label_tools import Given
    from schemas import RewardObserved

TOOLS = ("label-studio", "argilla", "langfuse", "jsonl")
"""Names of the tools, as in `doors.integrations.label_tools`, which is slow to import."""
by_option = click.option(
    "--by",
    metavar="NAME",
    help="Who labels: NAME stands in the source, as human:NAME; default: nobody is named.",
)


@click.group(cls=Suggesting, context_settings={"max_content_width": 110})
def labels() -> None:
    """Show what people are asked to label, give labels, and exchange them with labelling tools.

    A router that declares how many labels people can give says with each decision whether a person
    is asked about it:

    \b
      "labels": {"want": 50, "per": "day"},
      "label_url": "https://traces.example.com/{request_id}"

    Then people label in the dashboard's inbox (pbstream dashboard --labels), here, or in a tool:

    \b
      pbstream labels list
      pbstream labels give 4f1c22a90b13 0.75 --by anna
      pbstream labels export label-studio tasks.json
      pbstream labels import label-studio done.json
    """


@labels.command("list")
@click.option("--all", "everything", is_flag=True, help="Show labelled requests as well.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N")
@router_option
@json_option
@pass_session
def list_(session: Session, everything: bool, limit: int, router_id: str, as_json: bool) -> None:
    """List what people are asked about and have not labelled yet, the newest first.

    It looks among the last PB_GATEWAY_SEARCH records of the router's partition. The model is not
    shown: who knows it may favour it.

    \b
      pbstream labels list
      pbstream labels list --json | jq -r '.[].link'
    """
    found = _asked(session, router_id)
    wanted = list(found.wanted) if everything else _open(session, found)
    rows = [_row(one, found) for one in wanted]
    if as_json:
        print_json(rows[:limit])
        return
    if not found.labelling.asks:
        from doors.console.asked_labels import not_asking

        raise not_asking(router_id)
    if rows:
        shown = table("request", "decided", "link", *(["labels"] if everything else []))
        for row in rows[:limit]:
            label = [_labels_text(row["labels"])] if everything else []
            shown.add_row(str(row["request_id"]), str(row["at"]), str(row["link"] or ""), *label)
        console().print(shown)
    click.echo(f"{len(rows)} {'asked about' if everything else 'to label'}.")


def _row(one: Wanted, found: AskedLabels) -> dict[str, object]:
    return {
        "request_id": one.request_id,
        "at": f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M:%S}",
        "link": found.labelling.link(one.request_id),
        "labels": {
            source: "can't tell" if label.cant_tell else label.reward
            for source, label in one.given.items()
        },
    }


def _labels_text(labels: object) -> str:
    assert isinstance(labels, dict)
    words = {source: "withdrawn" if label is None else label for source, label in labels.items()}
    return ", ".join(f"{source} {label}" for source, label in words.items())


class Word(click.ParamType):
    """A reward from 0 to 1, or a word."""

    name = "label"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        if value in WITHDRAWN or value in CANNOT:
            return str(value)
        if value in THUMBS:
            return THUMBS[str(value)]
        try:
            return float(click.FloatRange(min=0, max=1).convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not 0 to 1, up, down, cant-tell or none", param, ctx)


THUMBS = {"up": 1.0, "down": 0.0}
"""Rewards of thumbs."""
CANNOT = ("cant-tell",)
"""Stands for a person who can't tell."""
WITHDRAWN = ("none",)
"""Takes back what the person said."""


@labels.command("give")
@click.argument("request_id")
@click.argument("label", type=Word())
@by_option
@answered
def give(
    session: Session,
    request_id: str,
    label: float | str,
    by: str | None,
    router_id: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Label an answer: 0 to 1, up, down, cant-tell, or none, which takes the label back. A later
    label of the same person replaces the earlier one.

    \b
      pbstream labels give 4f1c22a90b13 0.75 --by anna
      pbstream labels give 4f1c22a90b13 up
      pbstream labels give 4f1c22a90b13 cant-tell --by ben
    """
    from commands.cli.cost_and_reward import tell
    from commands.reports import report

    found = _asked(session, router_id)
    event = found.request(request_id).label(
        found.labelling.source(_name(by)),
        label if isinstance(label, float) else None,
        cant_tell=label in CANNOT,
    )
    tell(run(report(session.settings, "rewards", event, seconds=timeout)), "reward", as_json)


def _name(by: str | None) -> str | None:
    from doors.console.wanted_labels import NAME

    if by is not None and not NAME.fullmatch(by):
        raise click.UsageError("--by is up to 64 of A-Z a-z 0-9 . _ @ -")
    return by


@labels.command("export")
@click.argument("tool", type=click.Choice(TOOLS), metavar="TOOL")
@click.argument("file", type=click.File("wb"), default="-")
@router_option
@pass_session
def export(session: Session, tool: str, file: IO[bytes], router_id: str) -> None:
    """Write what is to be labelled as a labelling tool imports it; FILE - is the screen.

    \b
      label-studio  tasks, for Import; $link and $request_id in the labelling interface, for example
                    <View><Text name="answer" value="$link"/>
                    <Rating name="reward" toName="answer" maxRating="5"/></View>
      argilla       records, for dataset.records.from_json; a field "answer", a RatingQuestion
      langfuse      items of an annotation queue, each a body of
                    POST /api/public/annotation-queues/QUEUE/items; traces have the requests' ids
      jsonl         a line of JSON each: add "reward" and "by", and import it

    Prompts and answers stay where they are: a task has the request's id and its link.

    \b
      pbstream labels export label-studio tasks.json
      pbstream labels export langfuse | jq -c '.[]'
    """
    from doors.console.asked_labels import not_asking
    from doors.integrations.label_tasks import Task, exported

    found = _asked(session, router_id)
    if not found.labelling.asks:
        raise not_asking(router_id)
    tasks = [
        Task(router_id, one.request_id, found.labelling.link(one.request_id))
        for one in _open(session, found)
    ]
    made = exported(tool, tasks)
    if tool == "jsonl":
        file.writelines(orjson.dumps(line) + b"\n" for line in made)
    else:
        file.write(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    click.echo(f"{len(tasks)} to label.", err=True)


@labels.command("import")
@click.argument("tool", type=click.Choice(TOOLS), metavar="TOOL")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--question", metavar="NAME", help="Which question is the reward, of several.")
@click.option(
    "--scale",
    metavar="LOW:HIGH",
    callback=low_and_high,
    help="Scale of numbers, such as 0:10; default: 1 to the router's steps (5), of Langfuse 0:1.",
)
@by_option
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@router_option
@pass_session
def import_(
    session: Session,
    tool: str,
    file: IO[bytes],
    question: str | None,
    scale: tuple[float, float] | None,
    by: str | None,
    dry_run: bool,
    router_id: str,
) -> None:
    """Send what people said in a labelling tool as labels; FILE - reads standard input.

    \b
      label-studio  an export as JSON: ratings, numbers, choices; skipped tasks: can't tell
      argilla       dataset.records.to_json, or records as the server returns them with responses
      langfuse      scores of an annotation queue, as GET /api/public/v3/scores?queueId=… returns
                    with &fields=subject,details,annotation, or version 2
      jsonl         lines with "request_id", "reward" (or "cant_tell": true) and "by"

    Words count as well: good, up, yes, 👍 are 1; bad, down, no, 👎 are 0. Who labelled stands in
    the source, as human:NAME. The same file again sends nothing; another label of the same person
    replaces the one before, and of several in one file the last one counts.

    \b
      pbstream labels import label-studio done.json
      pbstream labels import argilla records.json --question quality --scale 0:10
      pbstream labels import jsonl --dry-run < labels.jsonl
    """
    from doors.console.failures import Failure
    from doors.integrations.label_scale import Scale, chosen, last_labels
    from doors.integrations.label_tools import given_in
    from doors.integrations.payload_items import Unconvertible
    from schemas import encode

    try:
        read = given_in(tool, file.read())
        given = chosen(read.given, question)
    except Unconvertible as error:
        raise Failure(f"{getattr(file, 'name', 'the file')}: {error}") from error
    found, named = _asked(session, router_id), _name(by)

    def source_of(one: Given) -> str:
        return found.labelling.source(named or one.by)

    last = last_labels(given, source_of)
    usual = Scale(0.0, 1.0) if tool == "langfuse" else Scale(1.0, float(found.labelling.steps))
    events, same = _events(found, last, Scale(*scale) if scale else usual, source_of)
    if dry_run:
        for event in events:
            click.echo(encode(event).decode())
    elif events:
        _send(session, events)
    what = "would be sent" if dry_run else "sent"
    labels = "1 label" if len(events) == 1 else f"{len(events)} labels"
    there = "1 was" if same == 1 else f"{same} were"
    click.echo(f"{labels} {what}, {there} there already.", err=dry_run)
    passed_over = {
        **read.passed_over,
        "answers to other questions": len(read.given) - len(given),
        "earlier labels of the same person": len(given) - len(last),
    }
    listed = ", ".join(f"{part} {count}" for part, count in passed_over.items() if count)
    if listed:
        click.echo(f"Passed over: {listed}.", err=dry_run)


def _events(
    found: AskedLabels, given: list[Given], scale: Scale, source_of: Callable[[Given], str]
) -> tuple[list[RewardObserved], int]:
    """Return the labels that say anything new, and how many do not. Raises Failure."""
    from doors.console.failures import Failure
    from doors.integrations.label_scale import reward_of
    from doors.integrations.payload_items import Unconvertible

    events: list[RewardObserved] = []
    same = 0
    for one in given:
        try:
            reward = reward_of(one, scale)
        except Unconvertible as error:
            raise Failure(f"request {one.request_id}: {error}; nothing was sent") from error
        wanted = found.request(one.request_id)
        source = source_of(one)
        label = wanted.given.get(source)
        if label is not None and (label.reward, label.cant_tell) == (reward, reward is None):
            same += 1
            continue
        event = wanted.label(source, reward, cant_tell=reward is None)
        wanted.take(event)
        events.append(event)
    return events, same


def _send(session: Session, events: list[RewardObserved]) -> None:
    from doors.console.bus import open_bus

    async def send(progress: Progress) -> None:
        task = progress.add_task("sending", total=len(events))
        async with open_bus(session.settings, "rewards") as bus:
            for begin in range(0, len(events), AT_ONCE):
                part = events[begin : begin + AT_ONCE]
                await bus.send_all(("rewards", event) for event in part)
                progress.advance(task, len(part))

    with _progress() as progress:
        run(send(progress))


AT_ONCE = 500
"""Labels that are sent before the bar moves."""


def _asked(session: Session, router_id: str) -> AskedLabels:
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

    with _progress() as progress:
        return run(read(progress))


def _open(session: Session, found: AskedLabels) -> list[Wanted]:
    """Return what is to be labelled, as long as workers remember it."""
    since = time.time() - session.settings.context_ttl
    return found.wanted.open(found.labelling, since=since)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Draw bars on standard error, which go away when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    screen = Console(stderr=True)
    with Progress(*columns, console=screen, transient=True, disable=not sys.stderr.isatty()) as bar:
        yield bar
