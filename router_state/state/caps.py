"""Absolute limits in dollars: a token bucket per period."""

from __future__ import annotations

from dataclasses import dataclass

from router_state.config import Cap


@dataclass(slots=True)
class Bucket:
    """What is left of one cap.

    Attributes:
        cap: the limit.
        left_usd: dollars left at time `at` (seconds since the epoch); below 0 when bills were
            higher than expected.
        exhausted: whether it has been used up since it last was half full and enough for a request.
    """

    cap: Cap
    left_usd: float
    at: float
    exhausted: bool = False

    def left_at(self, now: float) -> float:
        """Return the dollars that will be left at a time, the clock not being moved."""
        if now <= self.at:
            return self.left_usd
        return min(self.cap.usd, self.left_usd + (now - self.at) * self.cap.usd / self.cap.seconds)

    def refill(self, now: float) -> None:
        """Let the time pass."""
        self.left_usd, self.at = self.left_at(now), max(self.at, now)

    def recover(self, now: float) -> None:
        """Let the time pass up to a request that can be paid for; one that is half full again may
        be used up again."""
        self.refill(now)
        self.exhausted = self.exhausted and self.left_usd <= self.cap.usd / 2.0

    def exhaust(self) -> bool:
        """Note that nothing is left for a request; tell whether that is news."""
        news, self.exhausted = not self.exhausted, True
        return news

    def spend(self, usd: float) -> None:
        """Take dollars out, or put them back."""
        self.left_usd -= usd


def declare(buckets: list[Bucket], caps: tuple[Cap, ...], *, now: float) -> list[Bucket]:
    """Return the buckets of these caps; one of the same period keeps what was spent from it."""
    found = []
    for cap in caps:
        old = next((bucket for bucket in buckets if bucket.cap.seconds == cap.seconds), None)
        spent = 0.0 if old is None else old.cap.usd - old.left_at(now)
        found.append(Bucket(cap, cap.usd - spent, now, old is not None and old.exhausted))
    return found
