"""`pbstream pools`: one budget for several routers."""

from __future__ import annotations

from pathlib import Path

import click

from doors.console.bus import open_bus
from doors.console.declarations import TOPICS
from doors.console.output import console, print_json, table
from doors.console.session import Session, json_option, option, pass_session, run
from doors.pools.file import Pools, read_pools
from doors.pools.keeping import Change, books, holdings_of, keep
from doors.pools.leases import Holding
from drawing.numbers import dual, usd

FILE = click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def pools() -> None:
    """Share one budget among several routers, and move it to where a dollar earns most.

    FILE names pools, their budgets and members: routers, or other pools.

    \b
      pools:
        shop:
          usd: 20000
          per: month
          timezone: Europe/Berlin
          members:
            chat: {max: 0.6}
            team-search: {min: 0.1}
        team-search:
          members: {search: {}, mail: {}}

    \b
      pbstream pools show pools.yaml
      pbstream pools keep pools.yaml
    """


@pools.command()
@FILE
@json_option
@pass_session
def show(session: Session, path: Path, as_json: bool) -> None:
    """Show what each pool has granted to its routers, and what of it is charged.

    \b
      pbstream pools show pools.yaml
    """
    found = read_pools(path)

    async def read() -> dict[str, dict[str, Holding]]:
        async with open_bus(session.settings, *TOPICS) as bus:
            return {root: await holdings_of(bus, found, root) for root in found.roots}

    told = run(read())
    if as_json:
        print_json(
            {
                root: {
                    **books(found, root, holdings),
                    "leases": {name: one.lease_usd for name, one in holdings.items()},
                }
                for root, holdings in told.items()
            }
        )
        return
    for root, holdings in told.items():
        _show(found, root, holdings)


def _show(found: Pools, root: str, holdings: dict[str, Holding]) -> None:
    sums = books(found, root, holdings)
    title = f"{root}: {usd(sums['usd'])} per {found.pools[root].per}"
    shown = table("router", "lease", "charged", "λ_t", title=title)
    for name, one in holdings.items():
        per = found.pools[root].per
        standings = (one.state and one.state.budgets) or ()
        charged = [standing.charged_usd for standing in standings if standing.period == per]
        shown.add_row(
            name,
            usd(one.lease_usd),
            usd(charged[0] if charged else None),
            dual(None if one.state is None else one.state.lambda_t),
        )
    console().print(shown)
    click.echo(f"{usd(sums['free_usd'])} are not granted, {usd(sums['charged_usd'])} are charged.")


@pools.command("keep")
@FILE
@option("--every", click.FloatRange(min=1.0), 60.0, "Seconds between two rounds.")
@click.option("--rounds", type=click.IntRange(1), help="How many; else until Ctrl-C.")
@json_option
@pass_session
def keep_pools(
    session: Session, path: Path, every: float, rounds: int | None, as_json: bool
) -> None:
    """Grant leases, and move them among the routers of each pool. Ctrl-C ends it.

    A lease is the budget of the period in a router's declaration, so routers go on without this
    command, with the leases that they have.

    \b
      pbstream pools keep pools.yaml
      pbstream pools keep pools.yaml --rounds 1
    """
    found = read_pools(path)

    def tell(root: str, changes: list[Change]) -> None:
        if as_json:
            print_json({"pool": root, "changes": [_as_json(one) for one in changes]})
            return
        for one in changes:
            why = "" if one.why_not is None else f", not in force: {one.why_not}"
            click.echo(f"{root}: {one.router_id} {usd(one.before_usd)} → {usd(one.after_usd)}{why}")

    async def go_on() -> None:
        async with open_bus(session.settings, *TOPICS) as bus:
            await keep(bus, found, every=every, tell=tell, rounds=rounds)

    try:
        run(go_on())
    except KeyboardInterrupt:
        click.echo()


def _as_json(one: Change) -> dict[str, object]:
    return {
        "router_id": one.router_id,
        "before_usd": one.before_usd,
        "after_usd": one.after_usd,
        "why_not": one.why_not,
    }
