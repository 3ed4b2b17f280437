"""`pbstream families`: routers that learn from each other."""

from __future__ import annotations

from pathlib import Path

import click

from commands.cli.router_change import change
from commands.cli.suggesting import Suggesting
from doors.console.bus import open_bus
from doors.console.output import console, print_json, table
from doors.console.session import (
    Session,
    json_option,
    pass_session,
    router_option,
    run,
    timeout_option,
)
from doors.families.known_families import TOPICS, bring, family_of, read_families, read_family
from drawing.family_lines import known_lines
from drawing.numbers import number
from ground.files.atomic_file import replacing
from ground.json_values import Document
from schemas.event import encode
from schemas.families import FamilyEstimated, SideListed

FAMILY = click.argument("family", metavar="FAMILY")
MODELS = "model", "members", "apart", "a newcomer expects", "from requests", "bills from requests"
"""Columns of the table of models."""
MEMBERS = "router", "rewards", "level", "weight", "tells", "learns"
"""Columns of the table of members."""


@click.group(cls=Suggesting)
def families() -> None:
    """Let routers learn from each other.

    \b
      pbstream families join support --router chat
      pbstream families show
      pbstream families export support support.json
    """


@families.command("join")
@FAMILY
@router_option
@click.option("--no-give", is_flag=True, help="Learn from the others, and tell them nothing.")
@click.option("--no-take", is_flag=True, help="Tell the others, and learn nothing from them.")
@timeout_option
@json_option
@pass_session
def join_family(
    session: Session,
    family: str,
    router_id: str,
    no_give: bool,
    no_take: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Let a router join a family; `none` takes the router out of its family, and gives back what
    it took.

    \b
      pbstream families join support --router chat
      pbstream families join support --router trial --no-give
      pbstream families join none --router chat
    """
    if no_give and no_take:
        raise click.UsageError("a member that neither gives nor takes is none: give one of both")

    def edit(document: Document) -> Document:
        kept = {name: value for name, value in document.items() if name != "family"}
        if family == "none":
            return kept
        said: object = family
        if no_give or no_take:
            said = {"name": family, "gives": not no_give, "takes": not no_take}
        return {**kept, "family": said}

    state = change(session, router_id, edit, timeout=timeout)
    if as_json:
        print_json(state)
        return
    what = "is in no family" if family == "none" else f"is in family {family}"
    click.echo(f"Router {router_id} {what}. In force at offset {state.config_offset}.")


@families.command("show")
@click.argument("family", metavar="[FAMILY]", required=False)
@json_option
@pass_session
def show_families(session: Session, family: str | None, as_json: bool) -> None:
    """Show families: their members, how alike they are, and what a newcomer starts with.

    \b
      pbstream families show
      pbstream families show support --json
    """

    async def read() -> list[FamilyEstimated]:
        async with open_bus(session.settings, *TOPICS) as bus:
            if family is not None:
                return [await read_family(bus, family)]
            return list((await read_families(bus)).values())

    found = run(read())
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if not found:
        click.echo(
            "No family has published anything yet: a family does once its members have 20 rewards "
            "or bills. `pbstream families join FAMILY --router ID` makes a router a member."
        )
    for one in found:
        show_family(one)


def show_family(family: FamilyEstimated) -> None:
    """Show what a family knows, and who is in it."""
    out = console()
    out.print(f"Family {family.family}: {'; '.join(known_lines(family))}.")
    models = table(*MODELS)
    for model in family.models:
        rewards, bills = model.rewards, model.bills
        models.add_row(
            model.model,
            "" if rewards is None else str(rewards.members),
            "" if rewards is None else apart_words(rewards),
            "" if rewards is None or rewards.expected is None else number(rewards.expected),
            _requests(rewards),
            _requests(bills),
        )
    out.print(models)
    listed = table(*MEMBERS)
    for one in family.listed:
        listed.add_row(
            one.router_id,
            str(one.rewards),
            number(one.level, signed=True),
            "left out" if one.aside else number(one.weight),
            "yes" if one.gives else "no",
            "yes" if one.takes else "no",
        )
    if family.listed:
        out.print(listed)
    if family.members > len(family.listed):
        out.print(f"And {family.members - len(family.listed)} more members.")


def apart_words(side: SideListed) -> str:
    """Write by how much members differ, and how sure that is."""
    if side.apart_interval is None:
        return f"± {number(side.apart)}"
    low, high = side.apart_interval
    return f"± {number(side.apart)} ({number(low)} to {number(high)})"


def _requests(side: SideListed | None) -> str:
    return "" if side is None else number(side.requests)


@families.command("export")
@FAMILY
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@json_option
@pass_session
def export_family(session: Session, family: str, path: Path, as_json: bool) -> None:
    """Write what a family knows into a file, for another cluster.

    The file has sums over all members' requests, and the names of members are left out.

    \b
      pbstream families export support support.json
    """

    async def read() -> FamilyEstimated:
        async with open_bus(session.settings, *TOPICS) as bus:
            return await read_family(bus, family)

    known = run(read()).model_copy(update={"listed": ()})
    with replacing(path) as part:
        part.write_bytes(encode(known))
    if as_json:
        print_json({"family": family, "models": len(known.models), "file": str(path)})
    else:
        click.echo(
            f"{path} has what {known.members} members know of {len(known.models)} models: "
            f"`pbstream families import {path}` brings that to another cluster."
        )


@families.command("import")
@click.argument(
    "path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--family", metavar="FAMILY", help="The family to bring it to; default: as exported.")
@json_option
@pass_session
def import_family(session: Session, path: Path, family: str | None, as_json: bool) -> None:
    """Bring the estimates in a file to a family, in place of those that were brought before.

    \b
      pbstream families import support.json
      pbstream families import support.json --family sales
    """
    known = family_of(path.read_bytes(), str(path))
    name = family or known.family

    async def write() -> int:
        async with open_bus(session.settings, *TOPICS) as bus:
            return int((await bring(bus, known, name)).offset)

    offset = run(write())
    if as_json:
        print_json({"family": name, "models": len(known.models), "offset": offset})
    else:
        click.echo(f"Family {name} begins with what {path} knows of {len(known.models)} models.")
