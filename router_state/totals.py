"""The totals of a router: counts and sums of decisions, commitments, bills and rewards."""

from __future__ import annotations

from math import isfinite
from typing import NoReturn

from router_state.config import MAX_COST_USD
from router_state.errors import CostOutOfRange, NonFiniteInput, RewardOutOfRange
from router_state.kernel import Total
from router_state.record import RequestRecord


def checked_cost(cost_usd: float) -> float:
    """Return a cost.

    Raises:
        NonFiniteInput, CostOutOfRange: not a cost.
    """
    # One comparison suffices for a good bill; it is false for a NaN, too.
    if not 0.0 <= cost_usd <= MAX_COST_USD:
        if not isfinite(cost_usd):
            raise NonFiniteInput("a cost is not finite")
        raise CostOutOfRange(f"a cost must be between 0 and {MAX_COST_USD:g} dollars")
    return float(cost_usd)


def refuse_reward(reward: float) -> NoReturn:
    """Refuse a number that is not a reward. Raises NonFiniteInput, RewardOutOfRange."""
    if not isfinite(reward):
        raise NonFiniteInput("a reward is not finite")
    raise RewardOutOfRange("a reward must be between 0 and 1")


class Forgotten:
    """The part of a router's totals that comes from forgotten requests."""

    __slots__ = ("bills", "requests", "rewards", "spend_usd")

    def __init__(self) -> None:
        self.requests = self.bills = self.rewards = 0
        self.spend_usd = 0.0


class Totals:
    """Counts and sums over a router's requests, and the router's clocks.

    Attributes:
        seq: number of decisions, which is the last decision's number.
        settled: number of decisions whose bill has come; expired: number of those whose bill did
            not come in time.
        rewards_applied: number of decisions that have a reward.
        t: the clock of forgetting: decisions under `paper`, rewards learned under `live`.
        latest: time of the last event, in seconds since the epoch.
        spent: Σ of the bills of decided requests; unmatched_cost_usd: Σ of bills without a request.
        committed: Σ of expected costs of `open_commitments` {request_id: decided_at, in order of
            seq}.
        forgotten: the part of `seq`, `settled`, `rewards_applied` and `spend_usd` that belongs to
            forgotten requests.
    """

    __slots__ = (
        "committed",
        "expired",
        "forgotten",
        "latest",
        "open_commitments",
        "rewards_applied",
        "seq",
        "settled",
        "spent",
        "t",
        "unmatched_cost_usd",
    )

    def __init__(self) -> None:
        self.t, self.latest = 0, 0.0
        self.open_commitments: dict[str, float] = {}
        self.start_over()

    def start_over(self) -> None:
        """Begin from 0, for a router that goes on from another one's learned state."""
        self.seq = self.settled = self.expired = self.rewards_applied = 0
        self.spent, self.committed, self.unmatched_cost_usd = Total(), Total(), 0.0
        self.forgotten = Forgotten()

    @property
    def spend_usd(self) -> float:
        """Dollars of the bills of decided requests."""
        return self.spent.usd

    @property
    def committed_usd(self) -> float:
        """Expected dollars of decisions whose bill is awaited."""
        return self.committed.usd

    @property
    def in_flight(self) -> int:
        """Number of decisions whose bill is awaited."""
        return len(self.open_commitments)

    def commit(self, request_id: str, record: RequestRecord, ticks: int) -> None:
        """Number a decision, add its expected cost, and move the clocks."""
        self.seq, self.t, at = record.seq, self.t + ticks, record.decided_at
        latest = self.latest
        self.latest = latest if latest > at else at
        self.open_commitments[request_id] = at
        self.committed.add(record.expected_cost_usd)

    def bill(self, request_id: str, record: RequestRecord, cost_usd: float) -> None:
        """Book the bill of a request without a plan, or replace it by a later revision."""
        before = record.bill
        self.spent.add(cost_usd)
        if before is None:
            self.settled += 1
            self._close(request_id, record.expected_cost_usd)
        else:
            # Only the difference is booked: `settled` counts this request already.
            self.spent.add(-before.cost_usd)

    def move(
        self,
        request_id: str,
        record: RequestRecord,
        *,
        before_usd: float,
        awaited_usd: float,
        now_awaited_usd: float,
    ) -> None:
        """Book a request with a plan after a bill or a verdict: the dollars spent so far, and the
        dollars still awaited.

        Args:
            record: the changed record; before_usd: dollars spent before the change; awaited_usd:
                dollars awaited before the change; now_awaited_usd: those awaited after the
                change.
        """
        bill = record.bill
        if bill is not None and bill.cost_usd != before_usd:
            self.spent.add(bill.cost_usd)
            self.spent.add(-before_usd)
        if request_id in self.open_commitments:
            self.committed.add(-awaited_usd)
            if record.is_awaited:
                self.committed.add(now_awaited_usd)
            else:
                del self.open_commitments[request_id]
                if not self.open_commitments:
                    self.committed = Total()

    def expire(self, request_id: str, record: RequestRecord) -> None:
        """Stop waiting for a bill; the expected cost stays charged."""
        self._close(request_id, record.awaited_usd)
        record.expired = True
        self.expired += 1

    def forget(self, request_id: str, record: RequestRecord) -> None:
        """Count a request as forgotten."""
        self._close(request_id, record.awaited_usd)
        gone = self.forgotten
        gone.requests += 1
        gone.rewards += record.label is not None
        if record.bill is not None:
            gone.bills += 1
            gone.spend_usd += record.bill.cost_usd

    def _close(self, request_id: str, awaited_usd: float) -> None:
        """Subtract a commitment from the sum, if the sum still contains it."""
        opened = self.open_commitments
        if opened.pop(request_id, None) is not None:
            # The sum is reset to 0 when nothing is awaited, as the stored rounding errors are
            # rounded, too.
            if opened:
                self.committed.add(-awaited_usd)
            else:
                self.committed = Total()
