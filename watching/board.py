"""Sum up a router's records for a live view."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from datetime import datetime

from drawing.pareto import Pareto, Point
from router_state.sessions.ranks import BELOW_OWN
from schemas import (
    AlertRaised,
    CostReported,
    DeadLetter,
    LambdaUpdated,
    RewardObserved,
    RouteDecided,
)
from watching.joined import Joined
from watching.tally import Tally, budget_of

RATE_SECONDS = 5.0
"""Seconds over which decisions are counted to a rate."""
RECENT = 500
"""Number of last decisions shown as shares and as the curve of λ_t."""
JOINED = 10_000
"""Number of last decisions whose bills and labels are matched to their model."""
ALERTS_KEPT = 4
"""Most alerts shown below the numbers."""
ANEW = (
    *("first_at", "decided", "repeats", "billed", "reward_sum", "reward_count", "lambda_history"),
    *("_tally", "_joined", "_recent"),
)
"""Attributes that follow from a router's decisions."""

Seen = RouteDecided | CostReported | RewardObserved | LambdaUpdated | AlertRaised | DeadLetter


@dataclass(slots=True)
class Board:
    """Numbers of one router since the view began; `state` is the worker's own account.

    Attributes:
        first_at: time of the first decision that was seen.
        shares: decisions by model among the last 500.
        lambda_history: λ_t of the last 500 states, from the first decision on.
        reward_sum, reward_count: rewards that were reported.
        dead_letters: refused events by reason.
    """

    router_id: str
    state: LambdaUpdated | None = None
    first_at: datetime | None = None
    decided: int = 0
    repeats: int = 0
    billed: int = 0
    reward_sum: float = 0.0
    reward_count: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    alerts: deque[AlertRaised] = field(default_factory=lambda: deque(maxlen=ALERTS_KEPT))
    alert_count: int = 0
    lambda_history: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _tally: Tally = field(default_factory=Tally)
    _joined: Joined[object] = field(default_factory=lambda: Joined(JOINED))
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    _times: deque[float] = field(default_factory=deque)

    @property
    def asked(self) -> bool:
        """Tell whether the router is known to have decided anything."""
        return bool(self.decided or (self.state and self.state.decided))

    def observe(self, event: Seen, *, at: float) -> None:
        """Take one record into account; `at` is when it was seen, in seconds of any steady
        clock.
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
                if self._joined.add(event):
                    self._tally.decide(event)
            case CostReported():
                self.billed += 1
                self._bill(event)
            case RewardObserved():
                if self._label(event) or not self._knows_all:
                    self.reward_sum += event.reward
                    self.reward_count += 1
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

    def _begin_anew(self) -> None:
        """Forget the decisions of an earlier router of this name, which was let go."""
        fresh = Board(self.router_id)
        for name in ANEW:
            setattr(self, name, getattr(fresh, name))

    def _bill(self, event: CostReported) -> None:
        request = self._joined.get(event.router_id, event.request_id)
        if (
            request is not None
            and event.cost_usd is not None
            # A call without an answer is billed with nothing even where answers are billed in
            # tokens, whose dollars are not known here.
            and (event.cost_usd > 0.0 or event.status in (None, "ok"))
            and event.model in (None, request.model)
            and event.revision > request.bill_revision
        ):
            request.bill_revision = event.revision
            self._tally.bill(request, event.cost_usd)

    @property
    def _knows_all(self) -> bool:
        """Tell whether every decision of the router was seen: what is of none is of another."""
        return self.state is not None and self.state.decided == self.decided < JOINED

    def _label(self, event: RewardObserved) -> bool:
        """Take a label in; tell whether its request is known."""
        if event.request_id is None:
            found, rank = self._joined.session(event.router_id, event.session_id or ""), -BELOW_OWN
        else:
            request, rank = self._joined.get(event.router_id, event.request_id), 0
            found = [] if request is None else [request]
        known = (rank, event.revision)
        for request in found:
            if event.model in (None, request.model) and known > request.label_rank:
                request.label_rank = known
                self._tally.label(request, event.reward)
        return bool(found)

    def pareto(self) -> Pareto:
        """Return the picture of the requests that were seen."""
        budget = budget_of(self.state)
        found, paid = self._tally.pareto(self._tally.models, budget_usd=budget), self.mean_bill
        quality = self._tally.labels.value
        if found.router is None and paid is not None and quality is not None:
            # Bills may be in tokens, whose prices only the worker knows.
            router = Point("this router", paid, quality, self._tally.labels.doubt)
            return replace(found, router=router)
        return found

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
        """Return the mean of the rewards that were reported, or None before the first."""
        return self.reward_sum / self.reward_count if self.reward_count else None

    @property
    def mean_bill(self) -> float | None:
        """Return the mean bill by the worker's account; None before the first."""
        state = self.state
        return state.spend_usd / state.settled if state is not None and state.settled else None

    @property
    def spend_per_budget(self) -> float | None:
        """Return the mean bill ÷ budget, by the worker's account; None without a budget or a
        bill, or where a request's budget moves with what is left of a period.
        """
        paid, budget = self.mean_bill, budget_of(self.state)
        return None if paid is None or budget is None else paid / budget
