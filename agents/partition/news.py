"""Note what a partition must still publish: routers whose state has changed, and alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from router_state.changes import Alert
from schemas.lambdas import MOST_UNBOOKED, Unbooked


class News:
    """Changes of one partition since the last publication.

    Attributes:
        routers: routers whose published state is older than the durable one.
        alerts: (router_id, alert), in order.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.routers: set[str] = set()
        self.alerts: list[tuple[str, Alert]] = []
        # By published router, the bills and rewards since then that changed nothing.
        self._unbooked: dict[str, list[Unbooked]] = {}

    def changed(self, router_id: str, alerts: Iterable[Alert] = ()) -> None:
        """Note that a router's state has changed, and its alerts."""
        self.routers.add(router_id)
        self.alerts += [(router_id, alert) for alert in alerts]

    def alert(
        self,
        name: str,
        kind: str,
        evidence: Mapping[str, object],
        *,
        direction: Literal["up", "down"] = "down",
        size: float = 1.0,
        lasted: float = 0.0,
    ) -> None:
        """Note an alert on a router, a pool or a family, whose cause has lasted some seconds."""
        now = self._clock()
        alert = Alert(kind, direction, size, since=now - lasted, observed_at=now, evidence=evidence)
        self.alerts.append((name, alert))

    def unbooked(self, router_id: str, event: Unbooked) -> None:
        """Note an event that changed nothing. Events of a router that was never published are left
        out, as nobody can wait for them yet.
        """
        self.routers.add(router_id)
        if (noted := self._unbooked.get(router_id)) is not None:
            noted.append(event)
            del noted[:-MOST_UNBOOKED]

    def take_routers(self) -> list[str]:
        """Return the routers to be published, in order, and empty the list."""
        taken, self.routers = self.routers, set()
        return sorted(taken)

    def take_alerts(self) -> list[tuple[str, Alert]]:
        """Return the alerts to be published, and empty the list."""
        taken, self.alerts = self.alerts, []
        return taken

    def take_unbooked(self, router_id: str) -> tuple[Unbooked, ...] | None:
        """Return a router's unbooked events since the last call; None the first time, when they are
        not known."""
        noted = self._unbooked.get(router_id)
        self._unbooked[router_id] = []
        return None if noted is None else tuple(noted)

    def gone(self, router_id: str) -> None:
        """Forget a router that was removed."""
        self._unbooked.pop(router_id, None)
