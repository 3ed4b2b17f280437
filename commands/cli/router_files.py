"""`pbstream routers show|diff|apply|schema`: declare a router by one file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from commands.cli.router_change import change, field_of, price_checked, require_router, sure
from commands.cli.verifier_options import NOBODY, max_attempts_option, verifiers_option
from doors.console.bus import open_bus
from doors.console.changing_declarations import TOPICS, put_in_force, read_router
from doors.console.failures import Failure
from doors.console.output import console as screen
from doors.console.output import print_json, table
from doors.console.router_file import as_yaml, changes, full_path, put, read_file, shown
from doors.console.router_status import Declared
from doors.console.session import (
    Session,
    json_option,
    pass_session,
    run,
    timeout_option,
    valid_router,
)
from doors.console.taken_up import TOPICS as STANDING
from doors.console.taken_up import require_in_force, status_of
from ground.json_values import Document
from schemas import RouterDeclared

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""Path of a router as YAML or JSON."""


@click.command()
@click.argument(
    "router_id", callback=lambda ctx, parameter, value: valid_router(value), metavar="ID"
)
@json_option
@pass_session
def show(session: Session, router_id: str, as_json: bool) -> None:
    """Print the declaration in force as a file that `pbstream routers apply` takes.

    \b
      pbstream routers show acme.chat > chat.yaml
    """

    async def read() -> tuple[Declared, str | None]:
        async with open_bus(session.settings, *STANDING) as bus:
            return await require_in_force(bus, router_id)

    found, note = run(read())
    if note is not None:
        click.echo(f"Not shown: {note}", err=True)
    if as_json:
        print_json(found.document)
    else:
        click.echo(
            "# `pbstream routers diff FILE` shows what a change would do, `apply FILE` puts it "
            "in force."
        )
        click.echo("# Fields and their ranges: `pbstream routers schema`.")
        click.echo(as_yaml(found.document), nl=False)


@click.command()
@click.argument("file", type=FILE)
@json_option
@pass_session
def diff(session: Session, file: Path, as_json: bool) -> None:
    """Show what `apply` would change, and change nothing; exit code 1 if it would change anything.

    \b
      pbstream routers diff chat.yaml
    """
    document = read_file(file)

    async def read() -> Declared | None:
        async with open_bus(session.settings, *STANDING) as bus:
            return (await status_of(bus, document["router_id"])).basis

    before = run(read())
    _require_same_size(before, document)
    found = changes({} if before is None else before.document, document)
    _show(found, before, document["router_id"], as_json)
    if found:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--based-on",
    type=click.IntRange(-1),
    metavar="OFFSET",
    help="Write only if the declaration at this offset is in force; -1: only a new router.",
)
@timeout_option
@json_option
@pass_session
def apply(
    session: Session, file: Path, based_on: int | None, timeout: float, as_json: bool
) -> None:
    """Put a file in force; to apply it again changes nothing.

    The file describes the whole router: a model that it does not name retires. The write is
    conditional: if somebody else changes the router meanwhile, the command fails and nothing is
    overwritten.

    \b
      pbstream routers diff chat.yaml
      pbstream routers apply chat.yaml
    """
    document = read_file(file)

    async def write() -> tuple[Declared | None, list[Document], int | None]:
        async with open_bus(session.settings, *TOPICS) as bus:
            # Read and written on one connection, on the condition that nothing changed in between.
            before = await read_router(bus, document["router_id"], seconds=timeout)
            router = await status_of(bus, document["router_id"])
            here = -1 if before is None else before.offset
            if based_on is not None and based_on != here:
                raise Failure(
                    f"in force is {'none' if here < 0 else f'offset {here}'}, not {based_on}: "
                    "nothing was changed."
                )
            # A worker would refuse it as well; this message adds what to do.
            _require_same_size(before, document)
            found = changes({} if before is None else before.document, document)
            if not found and router.status == "waiting":
                raise Failure(f"Nothing changes: {router.note}")
            # A refused declaration behind it is replaced by what is in force.
            if not (found or router.status == "refused"):
                return before, found, None
            state = await put_in_force(
                bus, document["router_id"], document, based_on=here, seconds=timeout
            )
        return before, found, state.config_offset

    before, found, offset = run(write())
    _show(found, before, document["router_id"], as_json, offset=offset)


@click.command("set")
@click.argument(
    "router_id", callback=lambda ctx, parameter, value: valid_router(value), metavar="ID"
)
@click.argument("fields", nargs=-1, metavar="[FIELD=VALUE...]")
@verifiers_option
@max_attempts_option
@sure
@timeout_option
@json_option
@pass_session
def set_fields(
    session: Session,
    router_id: str,
    fields: tuple[str, ...],
    verifiers: Document | str | None,
    max_attempts: int | None,
    yes: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Change fields of a declaration; dots separate levels, and an empty value removes a field. A
    model's name may hold dots; one in quotes is taken as it stands.

    \b
      pbstream routers set acme.chat gamma=0.999 min_reward=0.9
      pbstream routers set acme.chat caps.day.usd=60 caps.day.mode=hard epsilon=
      pbstream routers set acme.chat models.gpt-4.1.offers.vision=true
      pbstream routers set acme.code --verifiers tests=0:exact,judge=0.00004:3 --max-attempts 2
    """
    parsed = [
        (path, price_checked(path, value, is_sure=yes)) for path, value in map(field_of, fields)
    ]
    chosen: dict[str, object] = {}
    if verifiers is not None:
        chosen["verifiers"] = None if verifiers == NOBODY else verifiers
        chosen |= {"max_attempts": None} if verifiers == NOBODY else {}
    if max_attempts is not None:
        chosen["max_attempts"] = max_attempts
    if not parsed and not chosen:
        raise click.UsageError("give FIELD=VALUE, --verifiers or --max-attempts.")

    def edit(document: Document) -> Document:
        # A deep copy: `put` changes its argument, and the edit may be repeated.
        changed: Document = json.loads(json.dumps(document))
        for path, value in parsed:
            put(changed, full_path(changed, path), value)
        for name, value in chosen.items():
            put(changed, [name], value)
        require_router(changed)
        return changed

    state = change(session, router_id, edit, timeout=timeout)
    if as_json:
        print_json(state)
    else:
        said = ", ".join([*fields, *(f"{name}={value}" for name, value in chosen.items())])
        click.echo(f"Router {router_id}: {said}. In force at offset {state.config_offset}.")


@click.command()
def schema() -> None:
    """Print the JSON Schema of a file that declares a router, for editors.

    \b
      pbstream routers schema > router.schema.json

    \b
    Then write this as the first line of such a file:
      # yaml-language-server: $schema=router.schema.json
    """
    click.echo(json.dumps(RouterDeclared.model_json_schema(), indent=2, ensure_ascii=False))


def _require_same_size(before: Declared | None, document: Document) -> None:
    here = 26 if before is None else before.document.get("dimensions", 26)
    if before is not None and document.get("dimensions", 26) != here:
        raise Failure(
            f"the router has {here} dimensions, which are chosen when it is created: declare "
            "another router_id."
        )


def _show(
    found: list[Document],
    before: Declared | None,
    router_id: str,
    as_json: bool,
    *,
    offset: int | None = None,
) -> None:
    if as_json:
        print_json(
            {
                "router_id": router_id,
                "based_on": before and before.offset,
                "changes": found,
                "in_force": offset,
            }
        )
        return
    if not found and offset is None:
        click.echo(
            f"Nothing changes: router {router_id} is as the file says, since offset "
            f"{before and before.offset}."
        )
        return
    listed = table(
        "field", "in force" if offset is None else "before", "file" if offset is None else "now"
    )
    for one in found:
        listed.add_row(one["what"], shown(one["before"]), shown(one["after"]))
    if found:
        screen().print(listed)
    if offset is not None:
        click.echo(f"Router {router_id} is as the file says. In force at offset {offset}.")
    elif before is None:
        click.echo(f"Router {router_id} is new.")
