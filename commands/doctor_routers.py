"""Check for `pbstream doctor` whether routers are taken up, and whether prompts fit them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from commands.finding import SHOWN, Finding
from doors.console.bus import open_bus
from doors.console.router_status import RouterStatus
from doors.console.taken_up import TOPICS, statuses
from doors.pools.declaring import read_pools
from ground.json_values import Document
from schemas import RouterDeclared
from streams.settings import Settings

AHEAD = timedelta(seconds=5)
"""Longest time that a worker's clock may be ahead without a finding."""


async def examine_routers(settings: Settings) -> AsyncIterator[Finding]:
    """Yield findings on routers, clocks and the contexts of prompts."""
    from streams.encoder.encoder_by_settings import projections_of

    async with open_bus(settings, *TOPICS, "pools") as bus:
        found, pools = await statuses(bus), await read_pools(bus)
    yield _declarations(found)
    # What waits for a worker is looked at as well, before one refuses it.
    routers = {
        name: declared.router
        for name, one in found.items()
        if (declared := one.in_force or one.waiting) is not None
    }
    states = [one.state for one in found.values()]
    ahead = [
        state
        for state in states
        if state is not None and state.observed_at > datetime.now(UTC) + AHEAD
    ]
    if ahead:
        late = max(state.observed_at for state in ahead) - datetime.now(UTC)
        yield Finding(
            "clocks",
            "wrong",
            f"a worker's clock is {late.total_seconds():.0f} s ahead of this machine's",
            "NTP",
        )
    else:
        yield Finding("clocks", "fine", "no worker's clock is ahead of this machine's")
    yield _pools(pools, routers)
    if settings.encoder_backend == "none":
        return
    named = {router_id: router for router_id, router in routers.items() if router.projection}
    if named:
        yield await asyncio.to_thread(_projections, settings, named)
    if plain := {
        router_id: router for router_id, router in routers.items() if not router.projection
    }:
        yield _prompts(plain, {found.dimensions for found in projections_of(settings)})


def _projections(settings: Settings, named: dict[str, RouterDeclared]) -> Finding:
    """Return a finding on the projections that routers declare."""
    from agents.declaring.configuration import projection_ref
    from ground.files.array_folder import UnusableArrays
    from streams.encoder.projections import require_projection

    if settings.priors_path is None:
        return Finding(
            "projections",
            "look",
            f"{len(named)} routers declare one; PB_PRIORS_PATH is not set here",
            "set it as for the workers, to check whether they exist",
        )
    wrong = []
    for router_id, router in named.items():
        reference = projection_ref(router)
        assert reference is not None
        try:
            require_projection(reference, router.dimensions, settings)
        except UnusableArrays as error:
            wrong.append(f"{router_id}: {error}")
    if wrong:
        return Finding(
            "projections",
            "wrong",
            "; ".join(wrong[:SHOWN]),
            "put the folder where PB_PRIORS_PATH leads, for all workers",
        )
    return Finding("projections", "fine", f"those of {len(named)} routers are there")


def _prompts(routers: dict[str, RouterDeclared], sizes: set[int]) -> Finding:
    """Return a finding on whether prompts become contexts of the routers' dimensions."""
    here = " or ".join(map(str, sorted(sizes)))
    others = [id_ for id_, router in routers.items() if router.dimensions not in sizes]
    if others:
        return Finding(
            "prompts",
            "look",
            f"{len(others)} of {len(routers)} routers do not have {here} dimensions, as "
            f"{', '.join(others[:SHOWN])}",
            "they take contexts only, or other workers' prompts: PB_PROJECTION_PATH",
        )
    return Finding("prompts", "fine", f"all routers have {here} dimensions, which prompts become")


def _pools(pools: dict[str, Document], routers: dict[str, RouterDeclared]) -> Finding:
    """Return a finding on whether the pools that routers and pools name are declared."""
    named = {name: router.pool for name, router in routers.items() if router.pool}
    named |= {f"pool {name}": pool["parent"] for name, pool in pools.items() if pool.get("parent")}
    missing = [f"{pool} of {name}" for name, pool in named.items() if pool not in pools]
    if missing:
        found = f"not declared: {', '.join(missing[:SHOWN])}; nothing is granted from there"
        return Finding("pools", "wrong", found, "pbstream pools set, or pools join another one")
    found = (
        f"all {len(pools)} that are named are declared" if pools else "none is declared or named"
    )
    return Finding("pools", "fine", found)


def _declarations(found: dict[str, RouterStatus]) -> Finding:
    """Return a finding on whether workers have put the newest declarations in force."""
    by: dict[str, list[RouterStatus]] = {}
    for one in found.values():
        by.setdefault(one.status, []).append(one)
    refused, unread = by.get("refused", []), [*by.get("waiting", []), *by.get("leaving", [])]
    told = [f"{len(found)} declared"]
    for many, what in ((refused, "refused"), (unread, "not taken up")):
        if many:
            names = ", ".join(one.router_id for one in many[:SHOWN])
            told.append(f"{len(many)} {what}, as {names}")
    if refused:
        why = "; ".join(f"{one.refused.message}" for one in refused[:SHOWN] if one.refused)
        remedy = "declare it anew, mended: the next declaration replaces a refused one"
        return Finding("routers", "wrong", f"{', '.join(told)}: {why}", remedy)
    if unread:
        return Finding(
            "routers", "look", ", ".join(told), "a worker takes them up: pbstream worker"
        )
    return Finding("routers", "fine", told[0])
