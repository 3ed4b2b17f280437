"""The list of routers whose λ_t is still to be published on `pb.lambda`, and of alerts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from router_state.changes import Alert
from schemas.lambdas import MOST_UNBOOKED, Unbooked

Place = tuple[int, str]
"""Partition and router_id."""


@dataclass(slots=True)
class Bulletin:
    """Changes since the last publication.

    Attributes:
        routers: those whose published state is older than the durable one.
        alerts: (router_id, alert), in order.
        unbooked: for each published router, the bills and rewards since then that changed nothing.
        publishing: a lock held while sending, so that older states are sent before newer ones.
    """

    routers: set[Place] = field(default_factory=set)
    alerts: list[tuple[str, Alert]] = field(default_factory=list)
    unbooked: dict[Place, list[Unbooked]] = field(default_factory=dict)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __bool__(self) -> bool:
        """Tell whether there is anything to publish."""
        return bool(self.routers or self.alerts)

    def changed(self, at: Place, alerts: Iterable[Alert] = ()) -> None:
        """Note that a router's state has changed, and its alerts."""
        self.routers.add(at)
        self.alerts += [(at[1], alert) for alert in alerts]

    def unmoved(self, at: Place, event: Unbooked) -> None:
        """Note an event that changed nothing; for a router that was never published nobody waits
        for it."""
        self.routers.add(at)
        if (noted := self.unbooked.get(at)) is not None:
            noted.append(event)
            del noted[:-MOST_UNBOOKED]

    def take_routers(self) -> list[Place]:
        """Return the routers to be published, in order, and empty the list."""
        taken, self.routers = self.routers, set()
        return sorted(taken)

    def take_alerts(self) -> list[tuple[str, Alert]]:
        """Return the alerts to be published, and empty the list."""
        taken, self.alerts = self.alerts, []
        return taken

    def take_unbooked(self, at: Place) -> tuple[Unbooked, ...] | None:
        """Return a router's unbooked events since the last call; None the first time, when they are
        not known."""
        noted = self.unbooked.get(at)
        self.unbooked[at] = []
        return None if noted is None else tuple(noted)

    def gone(self, at: Place) -> None:
        """Forget a router that was removed."""
        self.unbooked.pop(at, None)

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget everything about partitions that this worker lost."""
        self.routers = {at for at in self.routers if at[0] not in partitions}
        self.unbooked = {
            at: noted for at, noted in self.unbooked.items() if at[0] not in partitions
        }
