"""Keep a request within what is left of the router's caps."""

from __future__ import annotations

from collections.abc import Sequence

from router_state.alert import Alert
from router_state.errors import CapReached
from router_state.journal import HEAD
from router_state.policies.eligibility import Excluded
from router_state.state.caps import Bucket
from router_state.state.router import RouterState


def apply(
    state: RouterState, excluded: Excluded, expected: Sequence[float], *, now: float
) -> tuple[Excluded, str | None]:
    """Rule out arms that what is left of a cap can't pay for; where that changes anything the
    reason is "capped".

    Where no arm is left a soft cap leaves the cheapest one, and an alert tells of it once.

    Raises:
        CapReached: a hard cap leaves nothing.
    """
    # Looked at and not moved: a refusal must leave what is left as it was.
    lefts = [bucket.left_at(now) for bucket in state.buckets]
    left = min(lefts)
    under = [
        why or (None if cost <= left else "capped")
        for why, cost in zip(excluded, expected, strict=True)
    ]
    if None in under:
        for bucket in state.buckets:
            bucket.recover(now)
        return under, None if under == excluded else "capped"
    tightest = [bucket for bucket, usd in zip(state.buckets, lefts, strict=True) if usd <= left]
    for bucket in tightest:
        if bucket.exhaust():
            state.journal.pieces.add(HEAD)
            state.journal.alerts.append(_alert(bucket, left, now))
    # Of several caps the one with the least left decides whether the request is refused.
    if any(bucket.cap.hard for bucket in tightest):
        raise CapReached(
            f"${max(left, 0.0):.6f} is left of the router's cap, less than the cheapest eligible "
            "model costs"
        )
    for bucket in state.buckets:
        bucket.refill(now)
    cheapest = min(
        (cost, k)
        for k, (cost, why) in enumerate(zip(expected, excluded, strict=True))
        if why is None
    )[1]
    return [None if k == cheapest else why or "capped" for k, why in enumerate(excluded)], "capped"


def _alert(bucket: Bucket, left_usd: float, now: float) -> Alert:
    cap = bucket.cap
    return Alert(
        kind="cap_reached",
        direction="up",
        size=(cap.usd - left_usd) / cap.usd,
        since=now,
        observed_at=now,
        evidence={
            "seconds": cap.seconds,
            "cap_usd": cap.usd,
            "mode": "hard" if cap.hard else "soft",
        },
    )
