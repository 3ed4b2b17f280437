"""`pbstream pools`: share one budget among several routers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

import click

from commands.cli.budget import CARRY, TIMEZONE, Budget, with_period
from commands.cli.router_change import change
from commands.cli.suggesting import Suggesting
from doors.console.bus import open_bus
from doors.console.failures import Failure
from doors.console.output import console, print_json, table
from doors.console.session import (
    Session,
    json_option,
    pass_session,
    router_option,
    run,
    timeout_option,
)
from doors.pools.declaring import read_pools, write_pool
from doors.pools.pool_lines import PoolLine, lines_of, read_states
from drawing.budget_lines import remaining
from drawing.numbers import usd
from ground.json_values import Document
from schemas.budgets import PERIODS

POOL = click.argument("pool_id", metavar="POOL")


@click.group(cls=Suggesting)
def pools() -> None:
    """Share one budget among several routers, and among other pools.

    \b
      pbstream pools set shop 20000 --per month
      pbstream pools set team-search --parent shop
      pbstream pools join team-search --router search
      pbstream pools show
    """


def _share(text: str) -> tuple[str, Document]:
    """Read `MEMBER=MIN-MAX`."""
    name, _, shares = text.partition("=")
    least, _, most = shares.partition("-")
    try:
        found = {"min": float(least or 0.0), "max": float(most or 1.0)}
    except ValueError:
        found = {}
    if not found or not 0.0 <= found["min"] <= found["max"] <= 1.0:
        raise click.UsageError(
            f"--member {text!r} is not MEMBER=MIN-MAX, two shares from 0 to 1, as chat=0.1-0.6"
        )
    return name, found


@pools.command("set", context_settings={"ignore_unknown_options": True})
@POOL
@click.argument("usd_limit", type=Budget(), metavar="[USD]", required=False)
@click.option("--per", type=click.Choice(PERIODS), help="Dollars of this period.")
@TIMEZONE
@CARRY
@click.option("--parent", metavar="POOL", help="The pool from which this pool borrows, or none.")
@click.option(
    "--member",
    "members",
    multiple=True,
    metavar="ID=MIN-MAX",
    help="Least and most share of the pool that a router, or another pool, may have.",
)
@click.option("--lease", type=click.FloatRange(5, 86_400), help="Seconds that a grant lasts.")
@json_option
@pass_session
def set_pool(
    session: Session,
    pool_id: str,
    usd_limit: float | None,
    per: str | None,
    timezone: str | None,
    carry: str | None,
    parent: str | None,
    members: tuple[str, ...],
    lease: float | None,
    as_json: bool,
) -> None:
    """Declare a pool, or change the fields that are named; `none` removes a budget.

    \b
      pbstream pools set shop 20000 --per month --timezone Europe/Berlin
      pbstream pools set shop --member chat=0-0.6 --member team-search=0.1-1
      pbstream pools set team-search --parent shop
    """
    if (timezone or carry or usd_limit is not None) and per is None:
        raise click.UsageError("a budget is of a period: name it with --per")

    async def write() -> Document:
        async with open_bus(session.settings, "pools") as bus:
            document = dict((await read_pools(bus)).get(pool_id, {}))
            if per is not None:
                document = with_period(document, per, usd_limit, timezone, carry)
            if parent is not None:
                document |= {"parent": None if parent == "none" else parent}
            if members:
                document["members"] = {
                    **(document.get("members") or {}),
                    **dict(map(_share, members)),
                }
            if lease is not None:
                document["lease_seconds"] = lease
            placed = await write_pool(bus, pool_id, document)
            return {**document, "pool_id": pool_id, "offset": placed.offset}

    written = run(write())
    if as_json:
        print_json(written)
    else:
        click.echo(f"Pool {pool_id} is declared at offset {written['offset']}.")


@pools.command("remove")
@POOL
@json_option
@pass_session
def remove_pool(session: Session, pool_id: str, as_json: bool) -> None:
    """Remove a pool: its routers may spend nothing more from it until they join another one.

    \b
      pbstream pools remove shop
    """

    async def write() -> None:
        async with open_bus(session.settings, "pools") as bus:
            if pool_id not in await read_pools(bus):
                raise Failure(
                    f"there is no pool {pool_id}: `pbstream pools show` names those there are."
                )
            await write_pool(bus, pool_id, None)

    run(write())
    if as_json:
        print_json({"pool_id": pool_id, "gone": True})
    else:
        click.echo(f"Pool {pool_id} is gone.")


@pools.command("join")
@POOL
@router_option
@timeout_option
@json_option
@pass_session
def join_pool(
    session: Session, pool_id: str, router_id: str, timeout: float, as_json: bool
) -> None:
    """Let a router join a pool; `none` takes it out of its pool.

    \b
      pbstream pools join shop --router chat
      pbstream pools join none --router chat
    """

    def edit(document: Document) -> Document:
        kept = {name: value for name, value in document.items() if name != "pool"}
        return kept if pool_id == "none" else {**kept, "pool": pool_id}

    state = change(session, router_id, edit, timeout=timeout)
    if as_json:
        print_json(state)
        return
    what = "is in no pool" if pool_id == "none" else f"is in pool {pool_id}"
    click.echo(f"Router {router_id} {what}. In force at offset {state.config_offset}.")
    if pool_id != "none" and pool_id not in run(_declared(session)):
        click.echo(
            f"No pool {pool_id} is declared yet, so nothing is granted: `pbstream pools set "
            f"{pool_id} USD --per month`."
        )


async def _declared(session: Session) -> Collection[str]:
    async with open_bus(session.settings, "pools") as bus:
        return await read_pools(bus)


@pools.command("show")
@click.argument("pool_id", metavar="[POOL]", required=False)
@json_option
@pass_session
def show_pools(session: Session, pool_id: str | None, as_json: bool) -> None:
    """Show the money that pools have granted to routers and why, what is spent, and the forecast
    for the end of each period.

    \b
      pbstream pools show
      pbstream pools show shop --json
    """

    async def read() -> dict[str, PoolLine]:
        async with open_bus(session.settings, "pools", "lambda") as bus:
            found = await read_pools(bus)
            if pool_id is not None and pool_id not in found:
                raise Failure(
                    f"there is no pool {pool_id}: `pbstream pools show` names those there are."
                )
            return lines_of(found, await read_states(bus))

    lines = {
        name: line
        for name, line in run(read()).items()
        if pool_id is None or name.rpartition("/")[0] == pool_id or _has_part(line, pool_id)
    }
    if as_json:
        print_json({name: _as_json(line) for name, line in lines.items()})
        return
    for line in lines.values():
        _show(line)
    if not lines:
        click.echo("No pool has a budget.")


def _has_part(line: PoolLine, pool_id: str) -> bool:
    return any(one.pool == pool_id for one in line.routers.values())


def _show(line: PoolLine) -> None:
    of = "" if line.usd is None else f": {usd(line.usd)}"
    columns = ("router", "pool", "grant", "spent", "left", "forecast")
    shown = table(*columns, title=f"{line.name}{of}")
    for name, one in sorted(line.routers.items()):
        forecast = "no traffic yet" if name in line.unasked else usd(one.forecast_usd)
        money = map(usd, (one.usd, one.charged_usd, one.left_usd))
        shown.add_row(name, one.pool, *money, forecast)
    console().print(shown)
    spent = f"{usd(line.charged_usd)} are spent by the routers that are in it"
    click.echo(f"{usd(line.lent_usd)} are granted, {spent}{_end(line)}.")
    if line.why is not None:
        click.echo(f"{line.why[0].upper()}{line.why[1:]}.")


def _end(line: PoolLine) -> str:
    """Return how a line's period will end, as the end of a sentence."""
    if line.ends is None:
        return "; no router has a grant: `pbstream pools join` lets one join"
    left = remaining(line.ends, datetime.now(UTC))
    if line.forecast_usd is None:
        return f"; {left} are left"
    usd_, low, high = map(usd, line.forecast_usd)
    return f"; {left} are left, and at the end {usd_} will have been spent ({low} to {high})"


def _as_json(line: PoolLine) -> Document:
    return {
        "usd": line.usd,
        "lent_usd": line.lent_usd,
        "charged_usd": line.charged_usd,
        "forecast_usd": line.forecast_usd and list(line.forecast_usd),
        "ends": line.ends and line.ends.isoformat(),
        "why": line.why,
        "routers": {
            name: {
                "pool": one.pool,
                "usd": one.usd,
                "charged_usd": one.charged_usd,
                "forecast_usd": None if name in line.unasked else one.forecast_usd,
            }
            for name, one in line.routers.items()
        },
    }
