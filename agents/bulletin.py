"""The list of what is still to be published of the routers: λ_t on `pb.lambda`, and alerts."""

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
        routers: whose state on `pb.lambda` is older than the durable one.
        alerts: (router_id, alert), in order.
        unbooked: of every router whose state this worker has published, the bills and rewards that
            came since and changed nothing.
        publishing: held while it is being sent: what is older is sent before what is newer.
    """

    routers: set[Place] = field(default_factory=set)
    alerts: list[tuple[str, Alert]] = field(default_factory=list)
    unbooked: dict[Place, list[Unbooked]] = field(default_factory=dict)
    publishing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __bool__(self) -> bool:
        """Tell whether there is anything to publish."""
        return bool(self.routers or self.alerts)

    def changed(self, at: Place, alerts: Iterable[Alert] = ()) -> None:
        """Note that a router's state has changed, and what was raised."""
        self.routers.add(at)
        self.alerts += [(at[1], alert) for alert in alerts]

    def unmoved(self, at: Place, event: Unbooked) -> None:
        """Note an event that was taken in and changed nothing; of a router that was never published
        nobody waits for it."""
        self.routers.add(at)
        if (noted := self.unbooked.get(at)) is not None:
            noted.append(event)
            del noted[:-MOST_UNBOOKED]

    def take_routers(self) -> list[Place]:
        """Return the routers that are to be published, in order, and begin anew."""
        taken, self.routers = self.routers, set()
        return sorted(taken)

    def take_alerts(self) -> list[tuple[str, Alert]]:
        """Return the alerts that are to be published, and begin anew."""
        taken, self.alerts = self.alerts, []
        return taken

    def take_unbooked(self, at: Place) -> tuple[Unbooked, ...] | None:
        """Return what came of a router since the last call; None the first time: it is not
        known."""
        noted = self.unbooked.get(at)
        self.unbooked[at] = []
        return None if noted is None else tuple(noted)

    def gone(self, at: Place) -> None:
        """Forget a router that is none any more."""
        self.unbooked.pop(at, None)

    def lost(self, partitions: frozenset[int]) -> None:
        """Forget everything about partitions that are not this worker's any more."""
        self.routers = {at for at in self.routers if at[0] not in partitions}
        self.unbooked = {
            at: noted for at, noted in self.unbooked.items() if at[0] not in partitions
        }
