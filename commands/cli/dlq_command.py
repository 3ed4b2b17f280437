"""`pbstream dlq`: what was refused, why, and once more."""

from __future__ import annotations

import sys

import click

from commands import dead_letter_search as letters
from commands.cli.suggesting import Suggesting
from commands.dead_letter_search import HOPELESS, Found
from doors.console.bus import open_bus
from doors.console.failures import Failure
from doors.console.output import console, print_json, table
from doors.console.session import Session, json_option, option, pass_session, run, valid_router

SOURCES = ("requests", "costs", "rewards", "routers", "pools")
"""Topics that a dead letter may come from, and may be sent to again."""
router = click.option(
    "--router",
    "router_id",
    metavar="ID",
    callback=lambda ctx, parameter, value: value if value is None else valid_router(value),
    help="Only of this router.",
)
reason = click.option(
    "--reason",
    "reasons",
    multiple=True,
    metavar="REASON",
    help="Only with this reason; may be given several times.",
)
topic = click.option(
    "--topic", "topics", multiple=True, type=click.Choice(SOURCES), help="Only from this topic."
)


@click.group(cls=Suggesting)
def dlq() -> None:
    """Look at the events that were refused, and send some again.

    \b
      pbstream dlq list --router acme.chat
      pbstream dlq show 3:1042
      pbstream dlq retry --reason encoder_unavailable
    """


@dlq.command("list")
@router
@reason
@topic
@option("--limit", click.IntRange(1, 10_000), 50, "Most dead letters to take.")
@json_option
@pass_session
def list_letters(
    session: Session,
    router_id: str | None,
    reasons: tuple[str, ...],
    topics: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> None:
    """List dead letters, the newest first, without their content.

    \b
      pbstream dlq list --reason orphan_cost --limit 10
    """

    async def read() -> list[Found]:
        async with open_bus(session.settings, "dlq") as bus:
            return await letters.find(
                bus, router_id=router_id, reasons=reasons, topics=topics, limit=limit
            )

    found = run(read())
    if as_json:
        print_json([one.as_json() for one in found])
        return
    if not found:
        click.echo("No dead letter.")
        return
    shown = table("letter", "at (UTC)", "topic", "reason", "router", "request", "message")
    for column in shown.columns:
        column.justify = "left"
    for one in found:
        place = (one.router_id or "–", one.request_id or "–", one.letter.message)
        shown.add_row(one.name, f"{one.at:%m-%d %H:%M:%S}", one.topic, one.letter.reason, *place)
    console().print(shown)
    if len(found) == limit:
        click.echo(f"The last {limit}; --limit shows more.")


@dlq.command()
@click.argument("letter")
@click.option("--raw", is_flag=True, help="Write only the event's bytes, as they came.")
@json_option
@pass_session
def show(session: Session, letter: str, raw: bool, as_json: bool) -> None:
    """Show one dead letter with its content, which may be a prompt.

    \b
      pbstream dlq show 3:1042
      pbstream dlq show 3:1042 --raw > event.json
    """

    async def read() -> Found:
        async with open_bus(session.settings, "dlq") as bus:
            return await letters.get(bus, letter)

    one = run(read())
    # Whatever the bytes are: some are refused because they are no UTF-8.
    text = None if one.value is None else one.value.decode(errors="backslashreplace")
    if raw:
        sys.stdout.buffer.write(one.value or b"")
    elif as_json:
        print_json({**one.as_json(), "stage": one.letter.stage, "value": text})
    else:
        click.echo(f"{one.letter.reason}: {one.letter.message or 'no message'}")
        place = f"{one.letter.topic}, partition {one.letter.partition}, offset {one.letter.offset}"
        click.echo(f"From {place}, {one.at:%Y-%m-%d %H:%M:%S} UTC.")
        obstacle = one.obstacle()
        click.echo(
            f"Not to be sent again: {obstacle}."
            if obstacle
            else f"Once more: pbstream dlq retry {one.name}"
        )
        click.echo(text if text is not None else "Its value is null.")


@dlq.command()
@click.argument("names", nargs=-1, metavar="[LETTER]...")
@router
@reason
@topic
@option("--limit", click.IntRange(1, 100_000), 1000, "Most dead letters to take.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_session
def retry(
    session: Session,
    names: tuple[str, ...],
    router_id: str | None,
    reasons: tuple[str, ...],
    topics: tuple[str, ...],
    limit: int,
    yes: bool,
    as_json: bool,
) -> None:
    """Send refused events to their topics again, byte for byte: those named, or all of a kind.

    Events that would be refused again in any case (malformed ones) are left out unless they are
    named. A bill whose dollars are booked already, and a declaration, are never sent again.

    \b
      pbstream dlq retry 3:1042 5:77
      pbstream dlq retry --reason encoder_unavailable --router acme.chat --yes
    """
    # Without names or filters everything would be sent; with both it is unclear which letters are
    # meant.
    if bool(names) == bool(router_id or reasons or topics):
        raise click.UsageError(
            "name the letters, or choose them with --router, --reason or --topic."
        )

    async def choose() -> list[Found]:
        async with open_bus(session.settings, "dlq") as bus:
            if names:
                return [await letters.get(bus, name) for name in names]
            found = await letters.find(
                bus, router_id=router_id, reasons=reasons, topics=topics, limit=limit
            )
        # The oldest first, in their original order: a bill before its revision.
        return [
            one for one in found if one.obstacle() is None and one.letter.reason not in HOPELESS
        ][::-1]

    # Sent on a second connection, as a person may think about the question for long.
    chosen = run(choose())
    for one in chosen:
        if (obstacle := one.obstacle()) is not None:
            raise Failure(f"{one.name} is not sent again: {obstacle}.")
    # A person who names letters has looked at them; a filter may match more than expected.
    if chosen and not (yes or names):
        _confirm(len(chosen))
    _print_sent(run(_send(session, chosen)) if chosen else [], as_json=as_json)


def _confirm(events: int) -> None:
    """Ask whether events are to be sent again. Raises Failure if they are not."""
    try:
        click.confirm(f"Send {events} events again?", abort=True, err=True)
    except click.Abort:  # a no, or nobody there to ask
        raise Failure("Nothing was sent. To send without being asked, give --yes.") from None


Sent = tuple[Found, int, int]
"""A dead letter whose event was sent again, with its new partition and offset."""


async def _send(session: Session, chosen: list[Found]) -> list[Sent]:
    async with open_bus(session.settings, "dlq", *SOURCES) as bus:
        placed = [(one, await letters.retry(bus, one)) for one in chosen]
    return [(one, place.partition, place.offset) for one, place in placed]


def _print_sent(sent: list[Sent], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"letter": one.name, "topic": one.topic, "partition": number, "offset": at}
                for one, number, at in sent
            ]
        )
        return
    for one, number, at in sent:
        click.echo(
            f"{one.name}: {one.letter.reason}, sent to {one.topic}, partition {number}, offset "
            f"{at}."
        )
    if not sent:
        click.echo("Nothing to send again.")
