"""`pbstream snapshot`: move a router's learned state between services as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.backup import backup, restore
from commands.cli.snapshot_file import LARGEST, read_file
from commands.cli.suggesting import Suggesting
from doors.console.bus import open_bus
from doors.console.changing_declarations import TOPICS, put_in_force, read_router
from doors.console.failures import Failure, Refused
from doors.console.output import console, print_json, table
from doors.console.session import (
    Session,
    json_option,
    pass_session,
    router_option,
    run,
    timeout_option,
    valid_router,
)
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import absence_of
from drawing.numbers import dual, usd
from ground.json_values import Document
from schemas import LambdaUpdated

if TYPE_CHECKING:
    from rich.table import Table

    from streams.settings import Settings

FILE = click.Path(dir_okay=False, path_type=Path)
EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=Suggesting)
def snapshot() -> None:
    """Keep what a router has learned in a file; look at it, compare two, let another router go on
    from it.

    \b
      pbstream snapshot export chat.pbs --router acme.chat
      pbstream snapshot inspect chat.pbs
      pbstream snapshot diff yesterday.pbs chat.pbs
      PB_BOOTSTRAP=other:9092 pbstream snapshot import chat.pbs
      pbstream snapshot import chat.pbs --router acme.chat-eu

    A snapshot holds what was learned of each model (quality and cost), λ_t with its debt and its
    last contexts, caps, clocks and the random generator, but no requests and no prompts. It has a
    version and a checksum: a file that is damaged, truncated, foreign or of a newer pbstream is
    refused, and nothing changes.
    """


@snapshot.command("export")
@click.argument("file", type=FILE)
@click.option("--force", is_flag=True, help="Replace the file if there is one.")
@router_option
@json_option
@pass_session
def export_command(
    session: Session, file: Path, force: bool, router_id: str, as_json: bool
) -> None:
    """Write a router's state to FILE; the service may run or not.

    It reads the changelog of the router's partition, so it needs the settings of the workers
    (PB_APP_ID, PB_PARTITIONS), but no worker.

    \b
      pbstream snapshot export chat.pbs --router acme.chat
    """
    from ground.files.atomic_file import replacing
    from streams.log.service_topics import TopicsNotReady, check_topics
    from streams.state.exporting import pack, read_state

    settings = session.settings
    if file.exists() and not force:
        raise Failure(f"{file} exists: choose another name, or replace it with --force.")
    if problems := run(check_topics(settings)):
        raise TopicsNotReady("\n".join(problems))
    state = run(read_state(settings, router_id))
    if state is None:
        raise run(_absence(settings, router_id))
    data = pack(state, router_id, settings)
    with replacing(file) as part:
        part.write_bytes(data)
    if as_json:
        print_json(_inspected(data))
    else:
        click.echo(
            f"{router_id}, decision {state.seq}: {len(state.arms)} models, {len(data):,} bytes "
            f"in {file}."
        )


@snapshot.command("import")
@click.argument("file", type=EXISTING)
@click.option(
    "--router",
    "router_id",
    metavar="ID",
    help="Name of the new router; default: its name in the file.",
)
@timeout_option
@json_option
@pass_session
def import_command(
    session: Session, file: Path, router_id: str | None, timeout: float, as_json: bool
) -> None:
    """Declare a new router that goes on from FILE: the same models, prices, budget and knobs, and
    everything learned.

    It decides as the exported one would have. Its books begin empty, as spend is the sum of its own
    bills: `seq` from 1, nothing spent, nothing in flight. The file travels in the declaration,
    which the router's worker puts in force whole or refuses. A router of that name must not exist:
    let it go first (`pbstream routers remove`), or choose another name.

    \b
      pbstream snapshot import chat.pbs
      pbstream snapshot import chat.pbs --router acme.chat-eu
      pbstream budget set 0.001 --router acme.chat-eu
    """
    from streams.state.exporting import declaration_from

    data, exported = read_file(file)
    name = valid_router(router_id or exported.about.get("router_id", ""))
    document = declaration_from(exported.state.config, name, data)
    if len(document["snapshot"]) > LARGEST:
        raise Failure(
            f"{file} has {len(data):,} bytes; a declaration takes {LARGEST * 3 // 4:,}: remove "
            "models, or use fewer dimensions."
        )

    async def write() -> LambdaUpdated:
        async with open_bus(session.settings, *TOPICS) as bus:
            if await read_router(bus, name) is not None:
                raise _exists(name)
            return await put_in_force(bus, name, document, based_on=-1, seconds=timeout)

    try:
        state = run(write())
    except Refused as refused:
        raise (_exists(name) if refused.reason == "stale_config" else refused) from None
    if as_json:
        print_json(state)
    else:
        click.echo(f"Router {name} goes on from {file}. In force at offset {state.config_offset}.")


@snapshot.command()
@click.argument("file", type=EXISTING)
@json_option
def inspect(file: Path, as_json: bool) -> None:
    """Show what a file holds: models, prices, evidence, λ_t, debt, counts. Needs no service.

    \b
      pbstream snapshot inspect chat.pbs --json | jq .models
    """
    from streams.state.snapshots import summary

    data, exported = read_file(file)
    found = summary(exported, data)
    if as_json:
        print_json(found)
        return
    shown = table(
        "model",
        "$/M input",
        "$/M output",
        "evidence",
        "cost ÷ list price",
        "$/request",
        "state",
        title=_title(found),
    )
    for name, model in found["models"].items():
        shown.add_row(
            name,
            f"{model['input_price_per_m']:g}",
            f"{model['output_price_per_m']:g}",
            f"{model['evidence']:,.1f}",
            f"{model['cost_ratio']:.3g}",
            usd(model["expected_cost_usd"]),
            model["state"],
        )
    console().print(shown)
    rest = table("", "router")
    for name in ("budget_usd_per_request", "spend_usd", "committed_usd", "debt_usd"):
        rest.add_row(name.replace("_usd", "").replace("_", " "), usd(found[name]))
    rest.add_row("λ_t", dual(found["lambda_t"]))
    for name in (
        "decided",
        "settled",
        "rewards_applied",
        "window",
        "dimensions",
        "profile",
        "bytes",
    ):
        value = found[name]
        rest.add_row(
            name.replace("_", " "),
            _plain(value),
        )
    console().print(rest)


@snapshot.command()
@click.argument("before", type=EXISTING)
@click.argument("after", type=EXISTING)
@json_option
def diff(before: Path, after: Path, as_json: bool) -> None:
    """Show what changed from one file to another: per model how far θ moved, evidence, prices; then
    λ_t, debt, spend, counts.

    \b
      pbstream snapshot diff yesterday.pbs today.pbs
    """
    from streams.state.snapshots import difference

    found = difference(read_file(before)[1], read_file(after)[1])
    if as_json:
        print_json(found)
        return
    if not found["models"] and not found["router"]:
        click.echo("They hold the same state.")
        return
    if not found["models"]:
        click.echo("The models are equal: the same prices, and nothing more was learned.")
    else:
        console().print(_moves(found["models"]))
    rest = table("router", "before", "after")
    for name, values in found["router"].items():
        write = dual if name == "lambda_t" else _plain
        rest.add_row(name, *map(write, values))
    if found["router"]:
        console().print(rest)


def _plain(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _moves(models: Document) -> Table:
    """Return the changes of each model."""
    shown = table("model", "|Δθ|", "Δ evidence", "Δ cost ÷ list price", "what else")
    for name, model in models.items():
        if model["change"] != "moved":
            shown.add_row(name, "–", "–", "–", model["change"])
            continue
        numbers = (
            f"{model['theta']:.4g}",
            f"{model['evidence']:+,.1f}",
            f"{model['cost_ratio']:+.3g}",
        )
        shown.add_row(
            name,
            *numbers,
            ", ".join(f"{key}: {was} → {now}" for key, (was, now) in model["other"].items()),
        )
    return shown


def _inspected(data: bytes) -> Document:
    from router_state.state.portable import unpack
    from streams.state.snapshots import summary

    return summary(unpack(data), data)


def _title(found: Document) -> str:
    about = found["about"]
    return (
        f"{about.get('router_id', '?')} of {about.get('service', '?')}, "
        f"{about.get('exported_at', '?')}, format {found['format']}"
    )


async def _absence(settings: Settings, router_id: str) -> Failure:
    async with open_bus(settings, *STANDING) as bus:
        return await absence_of(bus, router_id)


def _exists(router_id: str) -> Failure:
    return Failure(
        f"router {router_id!r} is declared already, and an import starts a new one: choose "
        "another name with --router, or let it "
        f"go first, with what it has learned: `pbstream routers remove --router {router_id}`."
    )


snapshot.add_command(backup)
snapshot.add_command(restore)
