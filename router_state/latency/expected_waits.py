"""The expected times of a request's calls, as a decision charges and publishes them."""

from __future__ import annotations

from typing import NamedTuple

PROBABILITY_PARTS = 1e6
"""Parts per unit to which a published probability is rounded."""


class Waits(NamedTuple):
    """Expected times of the calls of a request, by arm.

    Attributes:
        units: times in the unit of the latency target; seconds: the same times in seconds.
        slow: whether the unit is the probability of a slow call.
    """

    units: list[float]
    seconds: list[float]
    slow: bool

    def candidate_fields(self) -> dict[str, list[float]]:
        """Return the fields of candidates on `pb.routes`, by arm."""
        found = {"expected_latency_ms": [round(one * 1e3, 1) for one in self.seconds]}
        # This takes a fifth of the time of `round`, which writes the number and reads it again.
        slow = (
            [int(one * PROBABILITY_PARTS + 0.5) / PROBABILITY_PARTS for one in self.units]
            if self.slow
            else None
        )
        return found if slow is None else found | {"slow": slow}
