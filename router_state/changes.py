"""Define the effects of an event on a router, as data to be persisted and published.

Owners of a router's data report their changes to its journal, from which an event's changes are
taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Literal

from msgspec import Struct

from router_state.errors import RouterStateError
from router_state.record import RequestRecord

Changed = dict[str, RequestRecord | None]
"""Records that changed, by request_id; None: the request is forgotten."""
MOST_SIZE = 1e300
"""Largest number of an alert: a quotient by a tiny budget has to be finite on the wire."""
CONFIG = "\x1fconfig"
"""Name of the piece with the declaration in force; no model has such a name, as theirs are
printable."""
HEAD = "\x1fhead"
"""Name of the piece with counters and scalars, which is written with every change."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; `kind`, `signal` and `size` are those of `pb.alerts`. Times are seconds since the
    epoch."""

    kind: str
    direction: Literal["up", "down"]
    size: float
    since: float
    observed_at: float
    evidence: Mapping[str, object]
    model: str | None = None
    signal: Literal["reward", "cost", "latency"] | None = None


class Outcome(StrEnum):
    """Outcome of an event."""

    APPLIED = "applied"
    REVISED = "revised"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


APPLIED, REVISED, DUPLICATE = Outcome.APPLIED, Outcome.REVISED, Outcome.DUPLICATE
"""Outcomes of bills and rewards as module names, which Python looks up faster than members of an
enum.
"""


class Changes(Struct, gc=False):
    """The effect of an event, or of several in a row.

    Attributes:
        outcome: outcome of the last event; a `DUPLICATE` has changed nothing.
        decision: record of the request, whether it was decided now or before.
        records: records that changed, by request_id; None: the request is forgotten.
        refusal: why the event was refused.
        alerts: alerts that were raised, in order.
        pieces: names of the pieces to be written anew, see `state_pieces.pack_piece`; the head
            among them where anything changed.
    """

    outcome: Outcome = Outcome.APPLIED
    decision: RequestRecord | None = None
    records: Changed = {}
    refusal: RouterStateError | None = None
    alerts: list[Alert] = []
    pieces: set[str] = set()

    def __bool__(self) -> bool:
        """Tell whether there is anything to write."""
        return bool(self.pieces)

    def accepted(self) -> Changes:
        """Return these changes. Raises `refusal` if the event was refused."""
        if self.refusal is not None:
            raise self.refusal
        return self

    def add(self, later: Changes) -> None:
        """Add the changes of a later event of the same router."""
        self.outcome, self.decision, self.refusal = later.outcome, later.decision, later.refusal
        self.alerts += later.alerts
        self.pieces |= later.pieces
        # The later state of a record wins; a forgotten record stays forgotten.
        self.records |= later.records


@dataclass(slots=True)
class Journal:
    """The journal of changes to a router's data.

    Attributes:
        pieces: names of the pieces that differ from what was last written.
        alerts: what an operator should know, in order.
        jumped: whether an input of λ_t has jumped: prices, the models with traffic, a suspicion.
            λ_t is then solved again before the next decision.
        overdue_at: time from which a verdict may be overdue; −infinity: not known yet.
    """

    pieces: set[str] = field(default_factory=set)
    alerts: list[Alert] = field(default_factory=list)
    jumped: bool = False
    overdue_at: float = -inf

    def alert(
        self,
        kind: str,
        size: float,
        evidence: Mapping[str, object],
        *,
        now: float,
        since: float | None = None,
        direction: Literal["up", "down"] = "up",
        model: str | None = None,
        signal: Literal["reward", "cost", "latency"] | None = None,
    ) -> None:
        """Raise an alert; `since` None: the reported change begins now."""
        since, size = now if since is None else since, min(max(size, -MOST_SIZE), MOST_SIZE)
        found = {name: _finite(value) for name, value in evidence.items()}
        self.alerts.append(Alert(kind, direction, size, since, now, found, model, signal))

    def take_alerts(self) -> list[Alert]:
        """Return the alerts raised since the last call of this method."""
        taken, self.alerts = self.alerts, []
        return taken

    def collect(
        self,
        outcome: Outcome = APPLIED,
        decision: RequestRecord | None = None,
        records: Changed | None = None,
        refusal: RouterStateError | None = None,
    ) -> Changes:
        """Return the changes of an event, with what was noted since the one before."""
        alerts, noted = self.take_alerts() if self.alerts else [], self.pieces
        # Neither a piece nor a record changes alone: counts and sums in the head go with it.
        if noted or records:
            noted.add(HEAD)
        # A copy, as owners hold on to the journal's set.
        pieces = noted.copy()
        noted.clear()
        return Changes(outcome, decision, records or {}, refusal, alerts, pieces)


def _finite(value: object) -> object:
    """Return a number clipped to `MOST_SIZE`, and any other value as it is."""
    return min(max(value, -MOST_SIZE), MOST_SIZE) if isinstance(value, float) else value
