"""`pbstream convert` and `pbstream ingest`: bills and labels from other systems."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from doors.console.failures import Failure, NoTopics
from doors.console.session import F, Session, pass_session, router_option, run
from doors.integrations.forms import FORMS
from streams.log.rights import INGEST_GROUP

if TYPE_CHECKING:
    from doors.integrations.payload_items import Finder
    from streams.settings import Settings


def options(function: F) -> F:
    """Add the options for reading payloads to a command."""
    for option in (
        router_option,
        click.option(
            "--source",
            default="judge",
            show_default=True,
            help="Source of a label where the payload names none.",
        ),
        click.option(
            "--mapping",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="File that maps fields to JSONPaths.",
        ),
        click.option(
            "--score",
            "scores",
            metavar="NAME",
            multiple=True,
            help="Name of the score that is the reward, where payloads hold several.",
        ),
        click.option("--from", "form", type=click.Choice(FORMS), help="Form of the payloads."),
    ):
        function = option(function)
    return function


@click.command("convert")
@click.argument("file", type=click.File("rb"), default="-")
@options
def convert(
    file: IO[bytes],
    form: str | None,
    mapping: Path | None,
    source: str,
    scores: tuple[str, ...],
    router_id: str,
) -> None:
    """Show which events a payload makes: a line of JSON each, with the topic; nothing is sent.

    A payload is a JSON document, an array, or a line of JSON each. --from names its form:
    OpenTelemetry traces and logs (OTLP as JSON), LiteLLM's standard logging payload, Langfuse
    scores, CloudEvents; --mapping reads anything else.

    \b
      pbstream convert --from langfuse scores.json
      pbstream convert --mapping thumbs.yaml feedback.ndjson --router chat
    """
    from doors.integrations.convert import convert as converted
    from doors.integrations.remembered import Remembered
    from schemas import MalformedEvent, encode

    name = getattr(file, "name", "the payload")
    finder, chosen = _finder(form, mapping, router_id=router_id, source=source, scores=scores)
    known = Remembered()
    try:
        found = converted(file.read(), finder, scores=chosen, remembered=known)
    except MalformedEvent as error:
        raise Failure(f"{name} cannot be mapped: {error.reason}: {error}") from error
    for one in found.taken:
        click.echo(f'{{"topic":"{one.topic}","value":{encode(one.event).decode()}}}')
    for warning in found.warnings:
        click.echo(f"Warning: {warning}.", err=True)
    refused = [f"item {one.index}: {one.error.reason}: {one.error}" for one in found.refused]
    if refused and not found.taken:
        raise Failure("\n".join([f"{name} cannot be mapped:", *refused]))
    for line in refused:
        click.echo(f"Refused: {line}", err=True)
    if found.passed_over:
        if not found.taken and (unmet := known.unmet(chosen)):
            raise Failure(f"{name}: {unmet}.")
        click.echo(f"{found.passed_over} passed over: without a wanted bill or label.", err=True)
    elif not found.taken:
        click.echo("It holds no costs or rewards.", err=True)


@click.command("ingest")
@click.argument("topic")
@options
@click.option(
    "--group",
    default=INGEST_GROUP,
    show_default=True,
    help="Consumer group, which remembers the position.",
)
@pass_session
def ingest(
    session: Session,
    topic: str,
    form: str | None,
    mapping: Path | None,
    source: str,
    scores: tuple[str, ...],
    router_id: str,
    group: str,
) -> None:
    """Read payloads from a Kafka topic, and write their bills and rewards to pb.costs and
    pb.rewards, until Ctrl-C.

    Items that cannot be mapped go to pb.dlq, and the others are written. Over HTTP the gateway
    takes the same payloads: POST /v1/routers/ID/ingest/FORM.

    \b
      pbstream ingest otlp_spans --from otel --router chat
    """
    from doors.integrations.payload_topic import Ingest

    finder, chosen = _finder(form, mapping, router_id=router_id, source=source, scores=scores)
    work = Ingest(session.settings, finder, topic=topic, group=group, scores=chosen)

    async def until_stopped() -> None:
        stop = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            # Stopped between two batches, so that everything sent is committed and not sent again.
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
        await _require_topics(session.settings, topic)
        click.echo(f"Reading {topic} on {session.settings.bootstrap}; Ctrl-C stops it.", err=True)
        await work.run(stop)

    run(until_stopped())
    done = work.done
    click.echo(
        f"{done.records} records read, {done.events} events written, "
        f"{done.refused_records} records refused or refused in part ({done.refused} items), "
        f"{done.passed_over} items passed over.",
        err=True,
    )


async def _require_topics(settings: Settings, payloads: str) -> None:
    """Raise if a topic does not exist; Kafka's client would ask for it for ever."""
    from doors.console.bus import topics_seen
    from streams.log.rights_check import require_rights

    present = await topics_seen(settings)
    if payloads not in present:
        raise Failure(
            f"topic {payloads!r} does not exist on {settings.bootstrap}, or this user may not read "
            "it: name the one that holds the payloads."
        )
    written = [settings.topic(name) for name in ("costs", "rewards", "dlq")]
    if missing := [name for name in written if name not in present]:
        await require_rights(settings, "ingest", names=missing)
        raise NoTopics(missing, settings.bootstrap)


def _finder(
    form: str | None,
    mapping: Path | None,
    *,
    router_id: str,
    source: str,
    scores: tuple[str, ...],
) -> tuple[Finder, tuple[str, ...]]:
    """Return the finder of a form or a mapping file, and the names of the scores that were
    chosen."""
    from doors.integrations.convert import finder_of
    from doors.integrations.mapping import BadMapping, read_mapping
    from doors.integrations.payload_items import Defaults

    # A payload of an unknown form is not guessed at: a wrong guess would book wrong dollars.
    if (form is None) == (mapping is None):
        raise click.UsageError("name the form with --from, or a mapping file with --mapping")
    defaults = Defaults(router_id, source)
    if form is not None:
        return finder_of(form, defaults), scores
    assert mapping is not None
    try:
        read = read_mapping(mapping)
    except BadMapping as error:
        raise click.BadParameter(str(error), param_hint="--mapping") from error
    if scores and read.name is None:
        raise click.UsageError(
            "--score: the mapping file does not say where the name is: name: $.…"
        )
    chosen = scores or (() if read.score is None else (read.score,))
    return lambda document, headers: read.items_in(document, defaults), chosen
