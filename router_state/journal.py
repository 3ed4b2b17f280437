"""What has changed in a router since it was last written: its owners report here, and nobody else
has to remember."""

from __future__ import annotations

from dataclasses import dataclass, field

from router_state.alert import Alert

CONFIG = "\x1fconfig"
"""The piece that holds the declaration in force. No model has such a name: theirs are printable."""
HEAD = "\x1fhead"
"""The piece that holds counters and scalars; whatever changes, it is written too."""


@dataclass(slots=True)
class Journal:
    """What the owners of a router's data have changed.

    Attributes:
        pieces: names of the pieces that differ from what was last written.
        alerts: what an operator should know, in order.
        jumped: whether something that λ_t depends on has changed at once: prices, who takes
            traffic, a suspicion. λ_t is solved anew before the next decision.
    """

    pieces: set[str] = field(default_factory=set)
    alerts: list[Alert] = field(default_factory=list)
    jumped: bool = False

    def take_pieces(self) -> set[str]:
        """Return the names of the pieces that changed since the last call, the head among them if
        there are any."""
        taken = self.pieces
        if taken:
            # Another set, as the taken one is handed on with the changes.
            self.pieces = set()
            taken.add(HEAD)
        return taken

    def take_alerts(self) -> list[Alert]:
        """Return what was raised since the last call."""
        taken, self.alerts = self.alerts, []
        return taken
