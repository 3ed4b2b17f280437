"""Add up the leases that routers report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from doors.console.bus import Bus
from ground.json_values import Document
from schemas import LambdaUpdated, MalformedEvent, decode
from schemas.lambdas import PeriodStanding


@dataclass(slots=True)
class LineStanding:
    """The current period of one budget of a pool.

    Attributes:
        usd: dollars as declared; None if the declaration has no such budget.
        routers: the lease that each router reports.
    """

    name: str
    usd: float | None = None
    routers: dict[str, PeriodStanding] = field(default_factory=dict)

    @property
    def lent_usd(self) -> float:
        """Return the dollars lent to all routers."""
        return math.fsum(one.usd for one in self.routers.values())

    @property
    def charged_usd(self) -> float:
        """Return the dollars charged to all routers."""
        return math.fsum(one.charged_usd for one in self.routers.values())


async def read_states(bus: Bus) -> list[LambdaUpdated]:
    """Return the newest state of every router."""
    found = []
    for key, value in (await bus.newest("lambda")).items():
        if key is not None and value is not None:
            try:
                found.append(decode(LambdaUpdated, value))
            except MalformedEvent:
                continue
    return found


def lines_of(
    pools: Mapping[str, Document], states: Iterable[LambdaUpdated]
) -> dict[str, LineStanding]:
    """Return every budget of every pool by its name, "POOL/PERIOD", with the routers that share
    it."""
    found: dict[str, LineStanding] = {}
    for pool_id, document in pools.items():
        given = document.get("budget") or []
        for budget in given if isinstance(given, list) else [given]:
            name = f"{pool_id}/{budget.get('per') or 'dates'}"
            found[name] = LineStanding(name, float(budget["usd"]))
    for state in states:
        for one in state.budgets or ():
            if one.line is not None:
                line = found.setdefault(one.line, LineStanding(one.line))
                line.routers[state.router_id] = one
    return found
