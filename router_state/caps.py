"""Absolute limits in dollars: a token bucket per period."""

from __future__ import annotations

from dataclasses import dataclass

from router_state.config import Cap


@dataclass(slots=True)
class Bucket:
    """What is left of one cap.

    Attributes:
        cap: the limit.
        left_usd: dollars left at time `at` (seconds since the epoch); below 0 when bills were higher than expected.
        reached: whether it has been used up since it last was half full and enough for a request.
    """

    cap: Cap
    left_usd: float
    at: float
    reached: bool = False

    def refill(self, now: float) -> float:
        """Let the time pass and return the dollars left."""
        if now > self.at:
            self.left_usd = min(self.cap.usd, self.left_usd + (now - self.at) * self.cap.usd / self.cap.seconds)
            self.at = now
        return self.left_usd


def declare(buckets: list[Bucket], caps: tuple[Cap, ...], *, now: float) -> list[Bucket]:
    """Return the buckets of these caps; one of the same period keeps what was spent from it."""
    found = []
    for cap in caps:
        old = next((bucket for bucket in buckets if bucket.cap.seconds == cap.seconds), None)
        spent = 0.0 if old is None else old.cap.usd - old.refill(now)
        found.append(Bucket(cap, cap.usd - spent, now, old is not None and old.reached))
    return found
