"""Sum up a router's records for a live view."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from drawing.pareto import Pareto
from ground.messages import Record
from schemas import (
    AlertRaised,
    CostReported,
    DeadLetter,
    LambdaUpdated,
    RewardObserved,
    RouteDecided,
)
from watching.dashboard.fleet import Fleet
from watching.dashboard.router_view import RouterView
from watching.tally import paid_per_budget

RATE_SECONDS = 5.0
"""Seconds over which decisions are counted to a rate."""
RECENT = 500
"""Number of last decisions shown as shares and as the curve of λ_t."""
ALERTS_KEPT = 4
"""Most alerts shown below the numbers."""
ANEW = (*("first_at", "decided", "repeats", "billed", "lambda_history", "_recent"),)
"""Attributes that follow from a router's decisions."""

COUNTED: dict[type, str] = {
    RouteDecided: "routes",
    CostReported: "costs",
    RewardObserved: "rewards",
    LambdaUpdated: "lambda",
}
"""Events that the dashboard's numbers are made of, with their topics."""

Seen = RouteDecided | CostReported | RewardObserved | LambdaUpdated | AlertRaised | DeadLetter


@dataclass(slots=True)
class Board:
    """Numbers of one router since the view began; `state` is the last state that a worker
    published.

    Mean rewards and costs are computed as for the dashboard.

    Attributes:
        rank: the rank of a label's source, as for the dashboard.
        first_at: time of the first decision that was seen.
        shares: decisions by model among the last 500.
        lambda_history: λ_t of the last 500 states, from the first decision on.
        dead_letters: refused events by reason.
    """

    router_id: str
    state: LambdaUpdated | None = None
    first_at: datetime | None = None
    decided: int = 0
    repeats: int = 0
    billed: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    alerts: deque[AlertRaised] = field(default_factory=lambda: deque(maxlen=ALERTS_KEPT))
    alert_count: int = 0
    lambda_history: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    rank: Callable[[str], int] = lambda source: 0
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    _times: deque[float] = field(default_factory=deque)
    _fleet: Fleet = field(init=False)
    _clock: float = 0.0

    def __post_init__(self) -> None:
        self._fleet = Fleet(self.rank)

    @property
    def view(self) -> RouterView:
        """The dashboard's view of the router, from the same events."""
        return self._fleet.router(self.router_id)

    @property
    def asked(self) -> bool:
        """Tell whether the router is known to have decided anything."""
        return bool(self.decided or (self.state and self.state.decided))

    def observe(self, event: Seen, *, at: float) -> None:
        """Take one record into account; `at` is the time at which it was read, in seconds of any
        steady clock.
        """
        match event:
            case RouteDecided(repeat=True):
                self.repeats += 1
            case RouteDecided():
                if event.seq == 1 and self.first_at not in (None, event.decided_at):
                    self._begin_anew()
                self.first_at = self.first_at or event.decided_at
                self.decided += 1
                self._recent.append(event.model)
                self._times.append(at)
                self._clock = event.decided_at.timestamp()
            case CostReported():
                self.billed += 1
            case LambdaUpdated():
                # After a partition moved, two workers publish for a moment, and the older account
                # may arrive later.
                if self.state is None or event.observed_at >= self.state.observed_at:
                    self.state = event
                    if event.decided:
                        self.lambda_history.append(event.lambda_t)
            case AlertRaised():
                self.alerts.append(event)
                self.alert_count += 1
            case DeadLetter():
                self.dead_letters[event.reason] += 1
        if (topic := COUNTED.get(type(event))) is not None:
            self._fleet.take(topic, event, at=self._clock, now=self._clock)

    def _begin_anew(self) -> None:
        """Forget the decisions of an earlier, removed router of this name."""
        fresh = Board(self.router_id)
        for name in ANEW:
            setattr(self, name, getattr(fresh, name))

    def declare(self, record: Record) -> None:
        """Read a record of `pb.routers`: models and prices."""
        self._fleet.observe("routers", record, now=record.timestamp / 1000.0)

    def pareto(self) -> Pareto:
        """Return the picture of the requests that were seen."""
        return self.view.pareto()

    def rate(self, now: float) -> float:
        """Return decisions per second over the last five seconds."""
        while self._times and self._times[0] < now - RATE_SECONDS:
            self._times.popleft()
        if not self._times:
            return 0.0
        # At least a fifth of a second: two decisions in one poll are not a rate of thousands.
        return len(self._times) / max(now - self._times[0], 0.2)

    @property
    def shares(self) -> dict[str, float]:
        """Return each model's share of the last decisions."""
        counts = Counter(self._recent)
        return {model: count / len(self._recent) for model, count in sorted(counts.items())}

    @property
    def mean_reward(self) -> float | None:
        """Return the mean label of the requests that were seen, or None before the first."""
        return self.view.tally.labels.value

    @property
    def spend_per_budget(self) -> float | None:
        """Return the mean bill ÷ budget, as the worker publishes it; None without a budget or a
        bill, or where a request's budget moves with what is left of a period.
        """
        return paid_per_budget(self.state)
