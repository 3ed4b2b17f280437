"""Track the declaration of a router that is in force, and each change of it, for the charts."""

from __future__ import annotations

from dataclasses import dataclass, field

from drawing.changes import News, Portfolio, differences
from schemas import RouterDeclared

WAITING = 8
"""Most declarations kept that no worker has taken up yet; usually there is one."""


@dataclass(slots=True)
class Declarations:
    """The declaration in force, and later ones: each may be refused, so it counts only once
    `pb.lambda` names its offset.
    """

    in_force: Portfolio | None = None
    _offset: int = -1
    _waiting: dict[int, Portfolio | None] = field(default_factory=dict)

    @property
    def newest(self) -> Portfolio | None:
        """The declaration in force, or the newest one if none is in force yet."""
        waiting = [one for one in self._waiting.values() if one is not None]
        return self.in_force or (waiting[-1] if waiting else None)

    def add(
        self, offset: int, router: RouterDeclared | None, *, at: float, known: int | None
    ) -> list[News]:
        """Take a declaration in, and return its news if it is the one that is in force.

        Args:
            known: the offset that `pb.lambda` names, None before its first record.
        """
        self._waiting[offset] = None if router is None else Portfolio.of(router)
        while len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
        return [] if known is None else self.acknowledge(known, at=at)

    def acknowledge(self, offset: int, *, at: float) -> list[News]:
        """Put the declaration at an offset in force; return what it changes."""
        if offset == self._offset or offset not in self._waiting:
            return []
        before, after = self.in_force, self._waiting[offset]
        self._offset, self.in_force = offset, after
        # Older declarations were refused, or replaced before a worker took them up.
        self._waiting = {at: one for at, one in self._waiting.items() if at > offset}
        return [] if before is None or after is None else list(differences(before, after, at=at))
