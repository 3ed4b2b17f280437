"""Keep the leases of pools: read what routers say, and declare the leases that follow from it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from doors.console.bus import Bus
from doors.console.declarations import read_router, write_router
from doors.console.failures import Failure, NoRouter
from doors.pools.file import Pools
from doors.pools.leases import Holding, changed, leases_of
from ground.json_values import Document
from schemas import LambdaUpdated, MalformedEvent, RouterDeclared, decode

TAKES = 10.0
"""Seconds in which a router should take a lease up. One that does not keeps what it has."""
CLOSE = 1e-9
"""Dollars up to which leases together may be above their pool, by rounding."""


@dataclass(frozen=True, slots=True)
class Change:
    """A lease that was changed, or why it was not."""

    router_id: str
    before_usd: float
    after_usd: float
    why_not: str | None = None


async def holdings_of(bus: Bus, pools: Pools, root: str) -> dict[str, Holding]:
    """Return what each router of a pool holds of it.

    Raises:
        NoRouter: one was never declared.
    """
    pool = pools.pools[root]
    found: dict[str, Holding] = {}
    for router_id in pools.routers(root):
        declared = await read_router(bus, router_id)
        if declared is None:
            raise NoRouter(router_id)
        record = await bus.latest("lambda", router_id)
        value = None if record is None else record.value
        state = None if value is None else decode(LambdaUpdated, value)
        # A worker that is away may still take up what was written: the larger of both counts.
        lease = max(lease_in(declared.document, pool.per), await _written(bus, router_id, pool.per))
        found[router_id] = Holding(lease, state)
    return found


async def _written(bus: Bus, router_id: str, per: str | None) -> float:
    """Return the lease of the newest declaration, in force or not; 0 where it can't be read."""
    record = await bus.latest("routers", router_id)
    if record is None or record.value is None:
        return 0.0
    try:
        decode(RouterDeclared, record.value)
    except MalformedEvent:
        return 0.0
    return lease_in(orjson.loads(record.value), per)


def lease_in(document: Document, per: str | None) -> float:
    """Return a declaration's budget of a period; 0 where it has none."""
    return next((float(one["usd"]) for one in _budgets(document) if one.get("per") == per), 0.0)


def with_lease(
    document: Document, usd: float, *, per: str | None, timezone: str | None
) -> Document:
    """Return a declaration with another budget of a period; others stay as they are."""
    others = [one for one in _budgets(document) if one.get("per") != per]
    mine = {"usd": usd, "per": per} | ({"timezone": timezone} if timezone else {})
    return {**document, "budget": [*others, mine]}


def _budgets(document: Document) -> list[Document]:
    given = document.get("budget") or []
    return given if isinstance(given, list) else [given]


async def keep_once(bus: Bus, pools: Pools, root: str) -> list[Change]:
    """Move a pool's money once, from where a dollar earns little to where it earns much.

    What gets less is declared first, and only what was given back is given on. So all leases that
    are in force are never more than the pool, whatever fails on the way; and of two keepers each
    writes on the condition that nobody else did.
    """
    pool, holdings = pools.pools[root], await holdings_of(bus, pools, root)
    before = {name: holding.lease_usd for name, holding in holdings.items()}
    assert pool.usd is not None
    in_force, changes = dict(before), []
    for name, usd in changed(before, leases_of(pools, root, holdings, now=time.time())):
        free = pool.usd - sum(lease for other, lease in in_force.items() if other != name)
        lease = min(usd, max(free + CLOSE, 0.0)) if usd > in_force[name] else usd
        why_not = await _declare(bus, name, lease, before[name], pools, root)
        changes.append(Change(name, before[name], lease, why_not))
        # Of what a worker did not take up in time the larger lease counts: it may still do so.
        in_force[name] = lease if why_not is None else max(lease, before[name])
    return changes


async def _declare(
    bus: Bus, router_id: str, usd: float, before: float, pools: Pools, root: str
) -> str | None:
    """Declare a lease; return why it is not in force."""
    pool = pools.pools[root]

    def edit(document: Document) -> Document:
        if abs(lease_in(document, pool.per) - before) > CLOSE:
            raise Failure("somebody else has changed it")
        return with_lease(document, usd, per=pool.per, timezone=pool.timezone)

    try:
        await write_router(bus, router_id, edit, seconds=TAKES)
    except Failure as failure:
        return failure.message
    return None


async def keep(
    bus: Bus,
    pools: Pools,
    *,
    every: float,
    tell: Callable[[str, list[Change]], None],
    rounds: int | None = None,
) -> None:
    """Move the money of all pools, again and again.

    Args:
        every: seconds between two rounds.
        tell: takes a pool's name and what was changed.
        rounds: how many; None: until it is ended.
    """
    made = 0
    while rounds is None or made < rounds:
        for root in pools.roots:
            tell(root, await keep_once(bus, pools, root))
        made += 1
        if rounds is None or made < rounds:
            await asyncio.sleep(every)


def books(pools: Pools, root: str, holdings: Mapping[str, Holding]) -> dict[str, float]:
    """Return what a pool has granted, what of it is charged, and what was never granted."""
    usd = pools.pools[root].usd or 0.0
    granted = sum(holding.lease_usd for holding in holdings.values())
    charged = sum(
        one.charged_usd
        for holding in holdings.values()
        for one in (holding.state and holding.state.budgets) or ()
        if one.period == pools.pools[root].per
    )
    return {"usd": usd, "granted_usd": granted, "charged_usd": charged, "free_usd": usd - granted}
