"""Sum up a policy's decisions and outcomes, in buckets over the requests and by phase, in bounded
memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from router_state.pacing.dollar_dual import UNREACHABLE
from studies.simulate.times import bin_of, quantile

BUCKETS = 400
"""Most points of a curve; beyond it they are joined in pairs."""
POINTS, LEAST_REQUESTS = 40, 20
"""Most points of a drawn line, and fewest requests in each of them."""


@dataclass(slots=True)
class Bucket:
    """Sums over some requests.

    Attributes:
        rewarded: number of requests whose reward is known; modelled: number of those whose outcome
            is a guess.
        timed: number of requests whose bill has a time; bins: these requests, counted by time.
        lambda_t: sum over the requests for which some price met the budget; without_price: number
            of the other requests.
    """

    requests: int = 0
    rewarded: int = 0
    billed: int = 0
    modelled: int = 0
    reward: float = 0.0
    cost_usd: float = 0.0
    budget_usd: float = 0.0
    budgeted: int = 0
    lambda_t: float = 0.0
    without_price: int = 0
    calls: dict[str, int] = field(default_factory=dict)
    timed: int = 0
    seconds: float = 0.0
    bins: dict[int, int] = field(default_factory=dict)

    def merge(self, other: Bucket) -> None:
        """Add another bucket's sums."""
        for name in (
            "requests",
            "rewarded",
            "billed",
            "modelled",
            "reward",
            "cost_usd",
            "budget_usd",
            "budgeted",
            "lambda_t",
            "without_price",
            "timed",
            "seconds",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for model, calls in other.calls.items():
            self.calls[model] = self.calls.get(model, 0) + calls
        for place, calls in other.bins.items():
            self.bins[place] = self.bins.get(place, 0) + calls

    @property
    def mean_reward(self) -> float | None:
        return self.reward / self.rewarded if self.rewarded else None

    @property
    def mean_cost_usd(self) -> float | None:
        return self.cost_usd / self.billed if self.billed else None

    @property
    def mean_seconds(self) -> float | None:
        return self.seconds / self.timed if self.timed else None

    @property
    def p95_seconds(self) -> float | None:
        return quantile(self.bins, 0.95)

    @property
    def mean_lambda_t(self) -> float:
        """Return the mean of λ_t where a price met the budget; `UNREACHABLE` where none did."""
        priced = self.requests - self.without_price
        return self.lambda_t / priced if priced else UNREACHABLE if self.requests else 0.0

    @property
    def cost_over_budget(self) -> float | None:
        """Return mean cost ÷ mean budget, or None without either."""
        if not self.billed or not self.budgeted or self.budget_usd <= 0.0:
            return None
        return (self.cost_usd / self.billed) / (self.budget_usd / self.budgeted)


@dataclass(slots=True)
class Track:
    """The track of a policy: buckets of equal width, which doubles when there are too many, and one
    bucket per phase.

    Observations count in both once `finish` is called.
    """

    name: str
    boundaries: list[int]
    width: int = 1
    buckets: list[Bucket] = field(default_factory=list)
    phases: list[Bucket] = field(default_factory=list)
    alerts: list[tuple[int, str, str | None, str]] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    _phase: int = 0
    _next: int = 0
    _open: Bucket = field(default_factory=Bucket)

    def __post_init__(self) -> None:
        self.phases = [Bucket() for _ in range(len(self.boundaries) + 1)]

    def observe(
        self,
        index: int,
        *,
        model: str,
        reward: float | None,
        cost_usd: float | None,
        budget_usd: float | None,
        lambda_t: float,
        modelled: bool,
        seconds: float | None = None,
    ) -> None:
        """Take one decision in, at this index of the history."""
        if index >= self._next:
            self._move_to(index)
        bucket = self._open
        bucket.requests += 1
        if lambda_t < UNREACHABLE:
            bucket.lambda_t += lambda_t
        else:
            bucket.without_price += 1
        bucket.calls[model] = bucket.calls.get(model, 0) + 1
        if modelled:
            bucket.modelled += 1
        if reward is not None:
            bucket.rewarded += 1
            bucket.reward += reward
        if cost_usd is not None:
            bucket.billed += 1
            bucket.cost_usd += cost_usd
        if seconds is not None:
            bucket.timed += 1
            bucket.seconds += seconds
            place = bin_of(seconds)
            bucket.bins[place] = bucket.bins.get(place, 0) + 1
        if budget_usd is not None:
            bucket.budgeted += 1
            bucket.budget_usd += budget_usd

    def finish(self) -> None:
        """Add the bucket that is still open to the sums."""
        if self._open.requests:
            self.requests += self._open.requests
            self.buckets[-1].merge(self._open)
            self.phases[self._phase].merge(self._open)
            self._open = Bucket()

    def _move_to(self, index: int) -> None:
        """End the open bucket; the next one lasts until its place in the series or its phase
        ends.
        """
        self.finish()
        while self._phase < len(self.boundaries) and index >= self.boundaries[self._phase]:
            self._phase += 1
        # The length of a history is not known beforehand, so curves get coarser instead of longer.
        while index // self.width >= BUCKETS:
            self._halve()
        place = index // self.width
        while len(self.buckets) <= place:
            self.buckets.append(Bucket())
        # One comparison for each decision; where the bucket belongs is worked out when it ends.
        self._next = (place + 1) * self.width
        if self._phase < len(self.boundaries):
            self._next = min(self._next, self.boundaries[self._phase])

    def _halve(self) -> None:
        merged = []
        for at in range(0, len(self.buckets), 2):
            bucket = self.buckets[at]
            if at + 1 < len(self.buckets):
                bucket.merge(self.buckets[at + 1])
            merged.append(bucket)
        self.buckets, self.width = merged, self.width * 2

    @property
    def stretch(self) -> int:
        """Return how many requests a point of a drawn line stands for: a fortieth of the history,
        and twenty at least.
        """
        return self.width * self._group

    @property
    def _group(self) -> int:
        return max(1, -(-len(self.buckets) // POINTS), -(-LEAST_REQUESTS // self.width))

    def points(self) -> Iterator[tuple[float, Bucket]]:
        """Yield the middle and the sums of each stretch: single requests would hide a line."""
        for at in range(0, len(self.buckets), self._group):
            parts = self.buckets[at : at + self._group]
            sums = Bucket()
            for part in parts:
                sums.merge(part)
            yield (at + len(parts) / 2) * self.width, sums

    @property
    def total(self) -> Bucket:
        """Return the sums over everything."""
        total = Bucket()
        for phase in self.phases:
            total.merge(phase)
        return total
