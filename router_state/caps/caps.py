"""The capability of caps: their declaration, the models that they rule out, and their state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.caps.bucket import Bucket, Cap, declare, keep_within, refill
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.errors import DamagedState
from router_state.packing.framing import Json, converted
from router_state.record import RequestRecord

PERIODS = {"hour": 3600.0, "day": 86_400.0}
"""Seconds of a cap's period; a day is 24 hours, in no time zone."""


class CapOnWire(Protocol):
    """A cap as it is declared."""

    usd: float
    mode: str


class OnWire(Protocol):
    """A router's declaration; `caps` maps the name of a period to its cap."""

    caps: object | None


class Caps(Capability):
    """The caps of a router.

    Attributes:
        buckets: the dollars left of each cap.
    """

    __slots__ = ("buckets",)
    name = "caps"
    declaration = tuple[Cap, ...]

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.buckets: list[Bucket] = []

    @classmethod
    def read(cls, wire: OnWire) -> tuple[Cap, ...] | None:
        """See Capability."""
        if wire.caps is None:
            return None
        found: dict[str, CapOnWire | None] = {
            period: getattr(wire.caps, period) for period in PERIODS
        }
        return tuple(
            Cap(cap.usd, PERIODS[period], hard=cap.mode == "hard")
            for period, cap in found.items()
            if cap is not None
        )

    @classmethod
    def document(cls, declared: tuple[Cap, ...]) -> dict[str, object]:
        """See Capability."""
        period = {seconds: name for name, seconds in PERIODS.items()}
        caps = {
            period[cap.seconds]: {"usd": cap.usd, "mode": "hard" if cap.hard else "soft"}
            for cap in declared
        }
        return {"caps": caps}

    def declare(self, declared: tuple[Cap, ...], *, now: float) -> None:
        """See Capability."""
        self.buckets = declare(self.buckets, declared, now=now)

    def afford(self, choice: Choice) -> None:
        """See Capability."""
        costs = choice.seen.expected_cost_usd
        excluded, reason, enough = keep_within(
            self.buckets, self.journal, choice.excluded, costs, now=choice.now
        )
        choice.cap(excluded, reason)
        choice.beyond = not enough
        choice.spare(min(bucket.left_at(choice.now) for bucket in self.buckets))

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability."""
        refill(self.buckets, enough=not choice.beyond, now=choice.now)
        for bucket in self.buckets:
            bucket.spend(record.expected_cost_usd)

    def billed(self, billing: Billing) -> None:
        """See Capability. The caps were charged the expected cost before."""
        for bucket in self.buckets:
            bucket.spend(billing.difference_usd)

    def moved(self, record: RequestRecord, usd: float) -> None:
        """See Capability."""
        for bucket in self.buckets:
            bucket.spend(usd)

    @classmethod
    def head(cls, one: Caps | None) -> dict[str, Json]:
        """See Capability."""
        if one is None:
            return {}
        return {"caps": [[bucket.left_usd, bucket.at, bucket.exhausted] for bucket in one.buckets]}

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        kept = converted(head.get("caps"), list[tuple[float, float, bool]], "caps")
        if len(kept) != len(self.buckets):
            raise DamagedState(f"caps: {len(kept)} are kept, {len(self.buckets)} are declared")
        self.buckets = [
            Bucket(bucket.cap, *left) for bucket, left in zip(self.buckets, kept, strict=True)
        ]

    def faults(self) -> Iterator[str]:
        """See Capability."""
        for bucket in self.buckets:
            finite = math.isfinite(bucket.left_usd) and math.isfinite(bucket.at)
            if not (finite and isinstance(bucket.exhausted, bool)):
                yield "caps"
