"""`pbstream labels export` and `import`: files of labelling tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING

import click
import orjson

from commands.cli.labels_read import asked, by_option, name_of, progress_bars, still_open
from commands.cli.row_options import low_and_high
from doors.console.session import Session, pass_session, router_option, run

if TYPE_CHECKING:
    from rich.progress import Progress

    from doors.console.asked_labels import AskedLabels
    from doors.integrations.label_scale import Scale
    from doors.integrations.label_tools import Given
    from schemas import RewardObserved

TOOLS = ("label-studio", "argilla", "langfuse", "jsonl")
"""Names of the tools, as in `doors.integrations.label_tools`, which is slow to import."""


@click.command("export")
@click.argument("tool", type=click.Choice(TOOLS), metavar="TOOL")
@click.argument("file", type=click.File("wb"), default="-")
@router_option
@pass_session
def export_labels(session: Session, tool: str, file: IO[bytes], router_id: str) -> None:
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

    found = asked(session, router_id)
    if not found.labelling.asks:
        raise not_asking(router_id)
    tasks = [
        Task(router_id, one.request_id, found.labelling.link(one.request_id))
        for one in still_open(session, found)
    ]
    made = exported(tool, tasks)
    if tool == "jsonl":
        file.writelines(orjson.dumps(line) + b"\n" for line in made)
    else:
        file.write(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    click.echo(f"{len(tasks)} to label.", err=True)


@click.command("import")
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
def import_labels(
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
    found, named = asked(session, router_id), name_of(by)

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

    with progress_bars() as progress:
        run(send(progress))


AT_ONCE = 500
"""Labels that are sent before the bar moves."""
