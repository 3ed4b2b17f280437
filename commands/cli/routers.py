"""`pbstream routers`: list and remove routers."""

from __future__ import annotations

import click

from commands.cli.router_files import apply, diff, schema, set_fields, show
from doors.console.bus import Bus, open_bus
from doors.console.declarations import TOPICS, repeats
from doors.console.failures import NoRouter, first_model
from doors.console.output import console, print_json, table
from doors.console.session import (
    DEFAULT_ROUTER,
    Session,
    json_option,
    pass_session,
    router_option,
    run,
)
from drawing.numbers import dual, usd
from ground.json_values import Document
from schemas import LambdaUpdated, MalformedEvent, RouterDeclared, decode, decode_router


@click.group()
def routers() -> None:
    """Show, compare and declare whole routers, or let one go.

    \b
      pbstream routers list
      pbstream routers show acme.chat > chat.yaml
      pbstream routers apply chat.yaml --dry-run
    """


for command in (show, diff, apply, set_fields, schema):
    routers.add_command(command)


@routers.command("list")
@json_option
@pass_session
def list_routers(session: Session, as_json: bool) -> None:
    """Show every declared router with its models, budget, decisions and spend."""

    async def read() -> list[Document]:
        async with open_bus(session.settings, *TOPICS) as bus:
            return await every_router(bus)

    rows = run(read())
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"No router yet: {first_model(DEFAULT_ROUTER)}.")
        return
    shown = table("router", "models", "budget/request", "decided", "spend", "λ_t")
    for row in rows:
        decided = "–" if row["decided"] is None else f"{row['decided']:,}"
        shown.add_row(
            row["router_id"],
            str(row["models"]),
            usd(row["budget_usd_per_request"]),
            decided,
            usd(row["spend_usd"]),
            dual(row["lambda_t"]),
        )
    console().print(shown)


@routers.command()
@router_option
@click.confirmation_option(prompt="Its learned state is deleted. Go on?")
@pass_session
def remove(session: Session, router_id: str) -> None:
    """Remove a router, with everything it has learned.

    \b
      pbstream routers remove --router old --yes
    """

    async def write() -> None:
        async with open_bus(session.settings, *TOPICS) as bus:
            # Otherwise a mistyped name would look like a success.
            latest = await bus.latest("routers", router_id)
            if latest is None or latest.value is None:
                raise NoRouter(router_id)
            await bus.send_bytes("routers", router_id, None)

    run(write())
    click.echo(f"Router {router_id} is removed as soon as its worker reads this.")


async def every_router(bus: Bus) -> list[Document]:
    """Return a row for every declared router, from its declaration in force."""
    states = {
        key.decode(errors="replace"): decode(LambdaUpdated, value)
        for key, value in (await bus.newest("lambda")).items()
        if key is not None and value is not None
    }
    rows: dict[str, Document | None] = {}
    async for record in bus.backwards("routers", None):
        try:
            router_id, declared = decode_router(key=record.key, value=record.value)
        except MalformedEvent:
            continue
        state = states.get(router_id)
        if router_id in rows:
            continue
        if declared is None:
            # A tombstone that is older than what is in force was followed by a new declaration.
            if state is None or record.offset > state.config_offset:
                rows[router_id] = None
        elif (
            state is None
            or record.offset == state.config_offset
            or repeats(record, state.config_offset)
        ):
            rows[router_id] = _row(declared, state)
    return sorted((row for row in rows.values() if row), key=lambda row: str(row["router_id"]))


def _row(declared: RouterDeclared, state: LambdaUpdated | None) -> Document:
    return {
        "router_id": declared.router_id,
        "models": len(declared.models),
        "budget_usd_per_request": declared.budget_usd_per_request,
        "decided": state.decided if state else None,
        "spend_usd": state.spend_usd if state else None,
        "lambda_t": state.lambda_t if state else None,
    }
