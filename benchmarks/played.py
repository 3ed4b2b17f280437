"""An engine for those who want answers, not changes: tests, benchmarks and the paper's
experiments."""

from __future__ import annotations

from typing import Any

from router_state.changes import Alert, Changes, Outcome
from router_state.config import RouterConfig, Vector
from router_state.engine import Engine
from router_state.events import (
    AT_MOST,
    Aged,
    Asked,
    Charged,
    Crowded,
    Event,
    Judged,
    Redeclared,
    Waited,
)
from router_state.record import Records, RequestRecord
from router_state.router import RouterState


class Played(Engine):
    """An engine with one method for each kind of event. A method makes the event and applies it.
    It raises the event's refusal, and returns the part of the changes that callers want."""

    __slots__ = ("_alerts",)

    def __init__(self, state: RouterState, records: Records) -> None:
        super().__init__(state, records)
        self._alerts: list[Alert] = []

    def play(self, event: Event, now: float = 0.0) -> Changes:
        """Apply an event. Raises its refusal."""
        changes = self.apply(event, now)
        self._alerts += changes.alerts
        return changes.accepted()

    def decide(self, request_id: str, x: Vector, *, now: float, **asked: Any) -> RequestRecord:
        """Return the decision of a request, see `Asked`."""
        decision = self.play(Asked(request_id, x, **asked), now).decision
        assert decision is not None
        return decision

    def settle(self, request_id: str, cost_usd: float | None = None, **bill: Any) -> Outcome:
        """Book a bill, see `Charged`."""
        return self.play(Charged(request_id, cost_usd, **bill)).outcome

    def learn(self, request_id: str, *, reward: float | None, **judged: Any) -> Outcome:
        """Learn a reward, see `Judged`."""
        return self.play(Judged(request_id, reward, **judged)).outcome

    def configure(self, config: RouterConfig, *, now: float) -> None:
        """Put a declaration in force."""
        self.play(Redeclared(config), now)

    def expire(self, *, now: float, limit: int = AT_MOST) -> int:
        """Expire commitments; return how many."""
        return len(self.play(Waited(limit), now).records)

    def forget(self, *, before: float, limit: int = AT_MOST) -> int:
        """Forget old requests; return how many."""
        return len(self.play(Aged(before, limit)).records)

    def forget_early(self, *, keep: int, limit: int = AT_MOST) -> int:
        """Forget what is beyond `keep` requests; return how many."""
        return len(self.play(Crowded(keep, limit)).records)

    def take_alerts(self) -> list[Alert]:
        """Return what was raised since the last call."""
        taken, self._alerts = self._alerts, []
        return taken
