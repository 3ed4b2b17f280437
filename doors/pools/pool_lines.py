"""Add up the grants that routers report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from doors.console.bus import Bus
from ground.json_values import Document
from schemas import LambdaUpdated, MalformedEvent, decode
from schemas.lambdas import PeriodStanding


@dataclass(slots=True)
class PoolLine:
    """The current period of one budget of a pool.

    Attributes:
        usd: dollars as declared; None if the declaration has no such budget.
        routers: the grant that each router reports.
        unasked: routers among these that have decided nothing yet.
    """

    name: str
    usd: float | None = None
    routers: dict[str, PeriodStanding] = field(default_factory=dict)
    unasked: set[str] = field(default_factory=set)

    @property
    def lent_usd(self) -> float:
        """Return the dollars granted to all routers."""
        return math.fsum(one.usd for one in self.routers.values())

    @property
    def charged_usd(self) -> float:
        """Return the dollars charged to all routers."""
        return math.fsum(one.charged_usd for one in self.routers.values())

    @property
    def is_spent(self) -> bool:
        """Tell whether nothing is left to grant."""
        return self.usd is not None and self.charged_usd >= self.usd

    @property
    def ends(self) -> datetime | None:
        """Return the end of the line's period; None without a grant."""
        return max((one.ends for one in self.routers.values()), default=None)

    @property
    def forecast_usd(self) -> tuple[float, float, float] | None:
        """Return the dollars that the routers will have been charged at the period's end, with a
        low and a high estimate; None while no router has been asked, or once nothing is left.

        Each end is the sum of the routers' own ends, as if all forecasts erred in the same
        direction.
        """
        if not self.routers.keys() - self.unasked or self.is_spent:
            return None
        every = self.routers.values()
        return (
            math.fsum(one.forecast_usd for one in every),
            math.fsum(one.forecast_low_usd for one in every),
            math.fsum(one.forecast_high_usd for one in every),
        )

    @property
    def why(self) -> str | None:
        """Return why the grants of routers are as large as they are; None without grants."""
        if not self.routers:
            return None
        if self.is_spent:
            return "nothing is left: `when_spent` of each router says what follows"
        if self.forecast_usd is None:
            return "shares are even: no traffic has been seen yet"
        expected = math.fsum(one.forecast_usd - one.charged_usd for one in self.routers.values())
        if self.usd is not None and expected <= self.usd - self.charged_usd:
            return (
                "more is left than all expect to spend: shares are even, and at least what each "
                "expects"
            )
        return "less is left than all would spend: it goes where a dollar earns most"


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


def lines_of(pools: Mapping[str, Document], states: Iterable[LambdaUpdated]) -> dict[str, PoolLine]:
    """Return every budget of every pool by its name, "POOL/PERIOD", with the routers that share
    its current period."""
    found: dict[str, PoolLine] = {}
    for pool_id, document in pools.items():
        given = document.get("budget") or []
        for budget in given if isinstance(given, list) else [given]:
            name = f"{pool_id}/{budget.get('per') or 'dates'}"
            found[name] = PoolLine(name, float(budget["usd"]))
    known = list(states)
    newest: dict[str, datetime] = {}
    for one in (one for state in known for one in state.budgets or ()):
        if one.line is not None:
            newest[one.line] = max(one.begins, newest.get(one.line, one.begins))
    for state in known:
        for one in state.budgets or ():
            # A router that nobody has asked since reports an earlier period.
            if one.line is not None and one.begins == newest[one.line]:
                line = found.setdefault(one.line, PoolLine(one.line))
                line.routers[state.router_id] = one
                if not state.decided:
                    line.unasked.add(state.router_id)
    return found
