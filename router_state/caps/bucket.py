"""Caps: absolute limits in dollars, each a token bucket that refills over its period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from router_state.changes import HEAD, Journal
from router_state.errors import CapReached


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap of `usd` dollars per `seconds`, refilled steadily. A hard cap refuses requests, a soft
    one falls back to the cheapest model.
    """

    usd: float
    seconds: float
    hard: bool = False


@dataclass(slots=True)
class Bucket:
    """The token bucket of one cap.

    Attributes:
        cap: the limit.
        left_usd: dollars left at time `at` (seconds since the epoch); below 0 when bills were
            higher than expected.
        exhausted: whether the bucket has been used up since it last was half full and held enough
            for a request.
    """

    cap: Cap
    left_usd: float
    at: float
    exhausted: bool = False

    def left_at(self, now: float) -> float:
        """Return the dollars left at a time, without changing the bucket."""
        if now <= self.at:
            return self.left_usd
        return min(self.cap.usd, self.left_usd + (now - self.at) * self.cap.usd / self.cap.seconds)

    def refill(self, now: float) -> None:
        """Refill up to a time."""
        self.left_usd, self.at = self.left_at(now), max(self.at, now)

    def recover(self, now: float) -> None:
        """Refill up to the time of an affordable request; once half full, the bucket may be
        reported as used up again."""
        self.refill(now)
        self.exhausted = self.exhausted and self.left_usd <= self.cap.usd / 2.0

    def exhaust(self) -> bool:
        """Note that too little is left for a request; return whether the bucket was not exhausted
        before.
        """
        news, self.exhausted = not self.exhausted, True
        return news

    def spend(self, usd: float) -> None:
        """Take dollars out, or put them back."""
        self.left_usd -= usd


def declare(buckets: list[Bucket], caps: tuple[Cap, ...], *, now: float) -> list[Bucket]:
    """Return the buckets of these caps; a bucket whose period stays the same keeps what was
    spent.
    """
    found = []
    for cap in caps:
        old = next((bucket for bucket in buckets if bucket.cap.seconds == cap.seconds), None)
        spent = 0.0 if old is None else old.cap.usd - old.left_at(now)
        found.append(Bucket(cap, cap.usd - spent, now, old is not None and old.exhausted))
    return found


def keep_within(
    buckets: list[Bucket],
    journal: Journal,
    excluded: list[str | None],
    expected: Sequence[float],
    *,
    now: float,
) -> tuple[list[str | None], str | None, bool]:
    """Rule out arms that cost more than is left of a cap. Return why each arm is excluded, the
    decision's reason ("capped" where a cap changed anything, else None), and whether enough is
    left for any arm.

    Where no arm is left, a soft cap keeps the cheapest arm eligible and raises one alert.

    Raises:
        CapReached: a hard cap leaves nothing.
    """
    # Only `refill` refills buckets: a refusal must leave them as they were.
    lefts = [bucket.left_at(now) for bucket in buckets]
    left = min(lefts)
    under = [
        why or (None if cost <= left else "capped")
        for why, cost in zip(excluded, expected, strict=True)
    ]
    if None in under:
        return under, None if under == excluded else "capped", True
    tightest = [bucket for bucket, usd in zip(buckets, lefts, strict=True) if usd <= left]
    for bucket in tightest:
        if bucket.exhaust():
            journal.pieces.add(HEAD)
            _alert(journal, bucket.cap, left, now)
    # Of several caps the one with the least left decides whether the request is refused.
    if any(bucket.cap.hard for bucket in tightest):
        raise CapReached(
            f"${max(left, 0.0):.6f} is left of the router's cap, less than the cheapest eligible "
            "model costs"
        )
    cheapest = min(
        (cost, k)
        for k, (cost, why) in enumerate(zip(expected, excluded, strict=True))
        if why is None
    )[1]
    found = [None if k == cheapest else why or "capped" for k, why in enumerate(excluded)]
    return found, "capped", False


def refill(buckets: list[Bucket], *, enough: bool, now: float) -> None:
    """Refill up to the time of a request that was decided; `enough` is what `keep_within`
    returned.
    """
    for bucket in buckets:
        if enough:
            bucket.recover(now)
        else:
            bucket.refill(now)


def _alert(journal: Journal, cap: Cap, left_usd: float, now: float) -> None:
    mode = "hard" if cap.hard else "soft"
    evidence = {"seconds": cap.seconds, "cap_usd": cap.usd, "mode": mode}
    journal.alert("cap_reached", (cap.usd - left_usd) / cap.usd, evidence, now=now)
