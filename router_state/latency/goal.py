"""Declared targets of latency, and prices of a second."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from router_state.config import RouterConfig
from router_state.errors import InvalidConfig

Of = Literal["answer", "first_token"]
TAIL = 0.05
"""Share of calls that may take longer than `p95_seconds`."""
MOST_CHARGED = 100.0
"""Largest wait in a score, in targets, or in seconds where there is only a price of one: slower
models are no worse."""


@dataclass(frozen=True, slots=True)
class LatencyGoal:
    """A target of calls' times, or a price of a second: one of the three.

    Attributes:
        of: what is timed: the whole answer, or up to its first token.
        p95_seconds: at most one call in twenty takes longer.
        mean_seconds: calls take so long on average at most.
        usd_per_second: what a second is worth beside the dollars of a call.
    """

    of: Of = "answer"
    p95_seconds: float | None = None
    mean_seconds: float | None = None
    usd_per_second: float | None = None

    def __post_init__(self) -> None:
        given = (self.p95_seconds, self.mean_seconds, self.usd_per_second)
        if sum(value is not None for value in given) != 1:
            raise InvalidConfig("a target of latency is one of p95_ms and mean_ms, or a price")
        if not all(value is None or 0.0 < value < math.inf for value in given):
            raise InvalidConfig(f"a target of latency must be finite and > 0, not {given}")

    def check(self, config: RouterConfig) -> None:
        """See config.Checked."""
        if config.profile == "paper":
            raise InvalidConfig(
                "profile 'paper' knows no times: latency_target and usd_per_second need profile "
                "live"
            )
        if self.usd_per_second is not None and not (config.budget_usd_per_request or config.paces):
            raise InvalidConfig(
                "usd_per_second needs a budget or min_reward: without one a dollar is worth nothing"
            )

    @property
    def most(self) -> float | None:
        """Return how much a call may take on average, in its unit: the probability of being slow,
        or seconds; None: nothing is kept within."""
        return TAIL if self.p95_seconds is not None else self.mean_seconds

    def taken(self, seconds: float) -> float:
        """Return what a call has taken, in the unit of `most`."""
        if self.p95_seconds is None:
            return seconds
        return 1.0 if seconds > self.p95_seconds else 0.0
