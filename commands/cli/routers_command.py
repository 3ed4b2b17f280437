"""`pbstream routers`: list and remove routers."""

from __future__ import annotations

import click

from commands.cli.router_files import apply, diff, schema, set_fields, show
from commands.cli.suggesting import Suggesting
from doors.console.bus import Bus, open_bus
from doors.console.failures import first_model
from doors.console.output import console, print_json, table
from doors.console.router_status import RouterStatus
from doors.console.session import (
    DEFAULT_ROUTER,
    Session,
    json_option,
    pass_session,
    router_option,
    run,
)
from doors.console.taken_up import TOPICS, absence_of, status_of, statuses
from drawing.numbers import dual, usd
from ground.json_values import Document

SAID = {
    "in_force": "in force",
    "refused": "refused",
    "waiting": "waits for a worker",
    "leaving": "removal waits for a worker",
}
"""Words for what became of a router's newest declaration."""


@click.group(cls=Suggesting)
def routers() -> None:
    """Show, compare and declare whole routers, or let one go.

    \b
      pbstream routers list
      pbstream routers show acme.chat > chat.yaml
      pbstream routers diff chat.yaml
    """


for command in (show, diff, apply, set_fields, schema):
    routers.add_command(command)


@routers.command("list")
@json_option
@pass_session
def list_routers(session: Session, as_json: bool) -> None:
    """Show every router with its models, budget, decisions and spend, as workers took it up.

    A declaration that workers refused, or that none has read yet, is shown as such.
    """

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
    shown = table("router", "models", "budget/request", "decided", "spend", "λ_t", "declaration")
    for row in rows:
        decided, models = row["decided"], row["models"]
        shown.add_row(
            row["router_id"],
            "–" if models is None else str(models),
            usd(row["budget_usd_per_request"]),
            "–" if decided is None else f"{decided:,}",
            usd(row["spend_usd"]),
            dual(row["lambda_t"]),
            SAID[row["status"]],
        )
    console().print(shown)
    for row in rows:
        if row["note"] is not None:
            click.echo(f"{row['note'][0].upper()}{row['note'][1:]}")


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
            router = await status_of(bus, router_id)
            if router.status in ("none", "leaving"):
                raise await absence_of(bus, router_id)
            await bus.send_bytes("routers", router_id, None)

    run(write())
    click.echo(f"Router {router_id} is removed as soon as its worker reads this.")


async def every_router(bus: Bus) -> list[Document]:
    """Return a row for every router that workers took up, refused, or have not read yet."""
    found = await statuses(bus)
    return [_row(found[router_id]) for router_id in sorted(found)]


def _row(router: RouterStatus) -> Document:
    declared = router.in_force and router.in_force.document
    state = router.state
    return {
        "router_id": router.router_id,
        "models": declared and len(declared["models"]),
        "budget_usd_per_request": declared and declared.get("budget_usd_per_request"),
        "decided": state and state.decided,
        "spend_usd": state and state.spend_usd,
        "lambda_t": state and state.lambda_t,
        "config_offset": state and state.config_offset,
        "status": router.status,
        "refused": _refusal(router),
        "note": router.note,
    }


def _refusal(router: RouterStatus) -> Document | None:
    refusal = None if router.later is None else router.later.refusal
    if refusal is None:
        return None
    return {"offset": refusal.offset, "reason": refusal.reason, "message": refusal.message}
