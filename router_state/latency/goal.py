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
"""Largest wait that a score counts, in targets, or in seconds where only a second has a price:
still slower models score no worse.
"""


@dataclass(frozen=True, slots=True)
class LatencyGoal:
    """A target of calls' times, or a price of a second: exactly one of the last three attributes
    is set.

    Attributes:
        of: what is timed: the whole answer, or the time up to its first token. p95_seconds: at most
            one call in twenty takes longer.
        mean_seconds: the largest mean time of calls.
        usd_per_second: dollars that a second is worth, beside the dollars of a call.
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
        """Return the target for the mean of a call: the probability of being slow, or seconds.
        None: there is no target.
        """
        return TAIL if self.p95_seconds is not None else self.mean_seconds

    def taken(self, seconds: float) -> float:
        """Return the time of a call in the unit of `most`."""
        if self.p95_seconds is None:
            return seconds
        return 1.0 if seconds > self.p95_seconds else 0.0
