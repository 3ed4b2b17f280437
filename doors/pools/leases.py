"""A round of sharing, level by level, as data: what routers said in, leases out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from doors.pools.file import Part, Pools
from doors.pools.sharing import Member, Standing, share
from schemas import LambdaUpdated

MARGIN = 1.1
"""Factor on what a router would still spend that has more than that: traffic may grow."""
WORTH_A_CHANGE = 0.01
"""Share of a lease that a change must be."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A router's lease, and what it last said of itself; None: nothing yet."""

    lease_usd: float
    state: LambdaUpdated | None


def standing_of(holding: Holding, per: str, *, now: float) -> Standing | None:
    """Return what a router said of the period that goes on; None where it says nothing of it."""
    state = holding.state
    found = [one for one in (state and state.budgets) or () if one.period == per]
    if state is None or not found or not state.budget_usd_per_request:
        return None
    one = found[0]
    if one.ends.timestamp() <= now:
        # It has had no request since the period before.
        return Standing(0.0, 0.0, holding.lease_usd, 1.0)
    # Of a lease that is in force already, what it says of its own is older.
    price = state.lambda_t / state.budget_usd_per_request
    wanted = MARGIN * max(one.forecast_high_usd - one.charged_usd, 0.0)
    return Standing(one.charged_usd + one.reserved_usd, price, wanted, one.requests_left)


def leases_of(
    pools: Pools, root: str, holdings: Mapping[str, Holding], *, now: float
) -> dict[str, float]:
    """Return the lease of every router of a pool with a budget of its own; `now` in seconds since
    the epoch."""
    pool = pools.pools[root]
    assert pool.usd is not None and pool.per is not None
    per = pool.per
    # What a router said before this period is of another one's money.
    standings = {
        name: (one.lease_usd, standing_of(one, per, now=now)) for name, one in holdings.items()
    }
    return _within(pools, root, pool.usd, standings)


Standings = Mapping[str, tuple[float, Standing | None]]
"""Each router's lease, and how it stands."""


def _within(pools: Pools, name: str, usd: float, standings: Standings) -> dict[str, float]:
    members = pools.pools[name].members
    shares = share(usd, [_member(pools, one, part, standings) for one, part in members.items()])
    leases: dict[str, float] = {}
    for member, lease in shares.items():
        if member in pools.pools:
            leases |= _within(pools, member, lease, standings)
        else:
            leases[member] = lease
    return leases


def _member(pools: Pools, name: str, part: Part, standings: Standings) -> Member:
    if name not in pools.pools:
        lease_usd, standing = standings[name]
        if standing is None and lease_usd <= 0.0:
            # It has no lease yet, so it can't say how it stands: it gets a first one.
            standing = Standing(0.0, 0.0, math.inf, 1.0)
        return Member(name, lease_usd, part.least, part.most, standing)
    inner = [
        _member(pools, member, its, standings) for member, its in pools.pools[name].members.items()
    ]
    return replace(_together(name, inner), least=part.least, most=part.most)


def _together(name: str, members: list[Member]) -> Member:
    """Return several members as one: a dollar earns on average what it earns at each, by what they
    have left."""
    lease = sum(member.lease_usd for member in members)
    known = [(m, m.standing) for m in members if m.standing is not None]
    if not known:
        return Member(name, lease)
    unknown = sum(member.lease_usd for member in members if member.standing is None)
    left = sum(member.left_usd for member, _ in known)
    price = sum(m.left_usd * s.price for m, s in known) / left if left > 0.0 else 0.0
    return Member(
        name,
        lease,
        standing=Standing(
            # Of those that say nothing all that they hold may be spent.
            unknown + sum(s.charged_usd for _, s in known),
            price,
            sum(s.wanted_usd for _, s in known),
            sum(s.requests for _, s in known),
        ),
    )


def changed(before: Mapping[str, float], after: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the leases that are worth a change, those that get smaller first: only what was given
    back is given on."""
    found = [
        (name, usd)
        for name, usd in after.items()
        if abs(usd - before[name]) > WORTH_A_CHANGE * max(before[name], usd)
    ]
    return sorted(found, key=lambda one: one[1] - before[one[0]])
