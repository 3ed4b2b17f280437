"""A few routers beside each other: their rows, their places in the picture, and their charts."""

from __future__ import annotations

from collections.abc import Sequence

from ground.json_values import Document
from watching.dashboard.fleet import Fleet
from watching.dashboard.router_view import RouterView

MOST = 7
"""Routers that are compared, at most: as many as there are colours."""
EVERY_SECONDS = 1.0
"""Seconds between two comparisons, as each is sent whole."""


class Compared:
    """The routers that one page compares, as far as they are known, in the order in which it asked
    for them."""

    def __init__(self, fleet: Fleet, router_ids: Sequence[str]) -> None:
        self._fleet = fleet
        self._router_ids = list(dict.fromkeys(router_ids))
        self._sent: dict[str, int] | None = None
        self._at = float("-inf")

    def changes(self, *, now: float) -> Document | None:
        """Return all routers if one of them has changed; None: none has."""
        known = [self._fleet.routers[one] for one in self._router_ids if one in self._fleet.routers]
        versions = {one.router_id: one.version for one in known}
        if versions == self._sent or now - self._at < EVERY_SECONDS:
            return None
        self._sent, self._at = versions, now
        rows = [self._fleet.row(one, now=now) | _place(one) for one in known]
        return {"routers": rows, "now": now}


def _place(router: RouterView) -> Document:
    found = router.pareto().router
    return {
        "cost_usd": found and found.cost_usd,
        "quality_off": found and found.off,
        "models": len(router.declared.prices) if router.declared else len(router.tally.models),
        "series": router.charts.series(),
    }
