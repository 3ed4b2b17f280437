"""The page of all pools: the dollars of each, granted and spent, and who holds them."""

from __future__ import annotations

from collections.abc import Callable

from doors.pools.pool_lines import PoolLine, lines_of
from ground.json_values import Document
from schemas.lambdas import PeriodStanding
from schemas.pools import PoolDeclared
from watching.dashboard.fleet import Fleet

EVERY_SECONDS = 1.0
"""Seconds between two computations of the sums over all routers."""
MOST_LEASES = 200
"""Most grants of a line that are listed: the largest."""


class Pools:
    """The pools that a visitor may see: those that grant to a router of the visitor's."""

    def __init__(self, fleet: Fleet, allows: Callable[[str], bool]) -> None:
        self._fleet = fleet
        self._allows = allows
        self._version, self._at = -1, float("-inf")
        self._sent: list[Document] | None = None

    def changes(self, *, now: float) -> Document | None:
        """Return all pools if anything has changed; None: nothing has."""
        fleet = self._fleet
        if fleet.version == self._version or now - self._at < EVERY_SECONDS:
            return None
        self._version, self._at = fleet.version, now
        found = self._pools()
        if found == self._sent:
            return None
        self._sent = found
        return {"pools": found}

    def _pools(self) -> list[Document]:
        pools = self._fleet.pools
        states = [
            one.state
            for one in self._fleet.routers.values()
            if one.state is not None and one.state.budgets and self._allows(one.router_id)
        ]
        documents = {name: one.model_dump(mode="json") for name, one in pools.items()}
        lines: dict[str, list[PoolLine]] = {}
        for line in lines_of(documents, states).values():
            lines.setdefault(line.name.rpartition("/")[0], []).append(line)
        used = {one.pool for state in states for one in state.budgets or () if one.pool}
        return [
            _pool(name, pools.get(name), lines.get(name, []))
            for name in sorted({*pools, *lines})
            if self._allows(name) or name in used or any(x.routers for x in lines.get(name, []))
        ]


def _pool(name: str, declared: PoolDeclared | None, lines: list[PoolLine]) -> Document:
    return {
        "pool_id": name,
        "parent": declared and declared.parent,
        "declared": declared is not None,
        "members": {}
        if declared is None
        else {one: [m.least, m.most] for one, m in (declared.members or {}).items()},
        "lines": [_line(line) for line in lines],
    }


def _line(line: PoolLine) -> Document:
    holdings = sorted(line.routers.items(), key=lambda one: (-one[1].usd, one[0]))
    return {
        "name": line.name,
        "per": line.name.rpartition("/")[2],
        "usd": line.usd,
        "ends": line.ends and line.ends.timestamp(),
        "lent_usd": line.lent_usd,
        "charged_usd": line.charged_usd,
        "forecast_usd": line.forecast_usd and list(line.forecast_usd),
        "why": line.why,
        "leases": [
            _lease(router_id, one, asked=router_id not in line.unasked)
            for router_id, one in holdings[:MOST_LEASES]
        ],
        "more": max(0, len(holdings) - MOST_LEASES),
    }


def _lease(router_id: str, one: PeriodStanding, *, asked: bool) -> Document:
    return {
        "router_id": router_id,
        "pool": one.pool,
        "usd": one.usd,
        "charged_usd": one.charged_usd,
        "left_usd": one.left_usd,
        "forecast_usd": one.forecast_usd if asked else None,
        "until": one.lease_until and one.lease_until.timestamp(),
        "binds": one.binds,
    }
