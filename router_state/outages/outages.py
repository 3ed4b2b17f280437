"""The capability of outages: which models don't answer now, and the reward of a failed call.

Any router may need this capability: bills report failures, declarations do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import orjson

from router_state.arms import Arms
from router_state.billing import Billing
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.choice import Choice
from router_state.events import FAILED
from router_state.outages.availability import PIECE, Availability
from router_state.packing.framing import Json
from router_state.record import RequestRecord


class OnWire(Protocol):
    """A router's declaration."""

    error_reward: float | None


class Outages(Capability):
    """The outages of a router's models.

    Attributes:
        availability: which models answer.
        error_reward: declared reward of a failed call; None: a failed call teaches no reward.
    """

    __slots__ = ("availability", "error_reward")
    name = "error_reward"
    declaration = float
    undeclared = True
    error_reward: float | None

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.availability = Availability(journal)
        self.error_reward: float | None = None

    @classmethod
    def read(cls, wire: OnWire) -> float | None:
        """See Capability."""
        return wire.error_reward

    @classmethod
    def document(cls, declared: float) -> dict[str, object]:
        """See Capability."""
        return {"error_reward": declared}

    def declare(self, declared: float | None, *, now: float) -> None:
        """See Capability; retired models are no longer watched."""
        self.error_reward = declared
        self.availability.keep([arm.name for arm in self.arms if arm.retired_at is None])

    def rule_out(self, choice: Choice) -> None:
        """See Capability."""
        known, names = self.availability, self.arms.names
        if known.models:
            found = known.rule_out(names, choice.excluded, now=choice.at, seq=choice.seq - 1)
            if found is not choice.excluded:
                choice.limit(found, names)

    def decided(self, choice: Choice, record: RequestRecord) -> None:
        """See Capability; the call keeps its number where its model is watched."""
        known = self.availability
        if known.models:
            nth = known.called(record.model, now=choice.at, seq=record.seq)
            if nth:
                record.keep(self.name, nth)

    def billed(self, billing: Billing) -> None:
        """See Capability. A failure counts as a reward only if the declaration names its value."""
        event, record, called = billing.event, billing.record, billing.called
        if event.status is None and not self.availability.models:
            return
        self.availability.observe(
            called,
            event.status,
            decided=record.seq,
            seq=billing.seq,
            now=billing.now,
            nth=record.kept_by(self.name, int) or 0 if called == record.model else 0,
            retry_after=event.retry_after,
        )
        arm = self.arms.find(called)
        if arm is not None and billing.unanswered:
            # The bill has come, so the call's cost is no longer at risk.
            arm.costs.awaited = 0
        if event.status in FAILED and billing.first:
            billing.reward = self.error_reward

    def start_over(self) -> None:
        """See Capability: outages at the time of the export are forgotten."""
        self.availability.keep(())
        self.availability.all_down = False

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability; there is no piece while all models answer."""
        return (PIECE,) if self.availability.is_kept else ()

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        values = self.availability.values() if piece == PIECE else None
        return None if values is None else orjson.dumps(values)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if kept := piece(PIECE):
            self.availability.restore(kept)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        yield from self.availability.faults()
