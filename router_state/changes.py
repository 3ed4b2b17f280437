"""What one event did to a router, as data: all that outside of the core is persisted and
published."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from router_state.alert import Alert
from router_state.errors import RouterStateError
from router_state.record import RequestRecord


class Outcome(StrEnum):
    """What an event did."""

    APPLIED = "applied"
    REVISED = "revised"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


@dataclass(slots=True)
class Changes:
    """What an event, or several in a row, did.

    Attributes:
        outcome: of the last event; `DUPLICATE` has changed nothing.
        decision: the record of the request that was asked for, decided now or before.
        refusal: why the event was refused.
        alerts: what was raised, in order.
        pieces: names of the pieces to be written anew, see `snapshot.pack_piece`; the head among
            them where anything changed.
        records: the requests that changed; None: it is forgotten.
    """

    outcome: Outcome = Outcome.APPLIED
    decision: RequestRecord | None = None
    refusal: RouterStateError | None = None
    alerts: list[Alert] = field(default_factory=list)
    pieces: set[str] = field(default_factory=set)
    records: dict[str, RequestRecord | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether there is anything to write."""
        return bool(self.pieces)

    def add(self, later: Changes) -> None:
        """Take what a later event of the same router did."""
        self.outcome, self.decision, self.refusal = later.outcome, later.decision, later.refusal
        self.alerts += later.alerts
        self.pieces |= later.pieces
        # The later state of a record wins; what was forgotten stays forgotten.
        self.records |= later.records
