"""Track the declaration of a router that is in force, and each change of it, for the charts."""

from __future__ import annotations

from dataclasses import dataclass, field

from drawing.declaration_changes import News, Portfolio, differences
from schemas import EventRefused, RouterDeclared

WAITING = 8
"""Most declarations that are kept while no worker has taken them up, and most refusals; usually
there is one.
"""


@dataclass(slots=True)
class Declarations:
    """The declaration in force, and later ones. A later one may be refused, so it counts only once
    `pb.lambda` names its offset.
    """

    in_force: Portfolio | None = None
    _offset: int = -1
    _newest: int = -1
    _refusals: dict[int, EventRefused] = field(default_factory=dict)
    _waiting: dict[int, Portfolio | None] = field(default_factory=dict)

    @property
    def newest(self) -> Portfolio | None:
        """The declaration in force, or the newest one that waits if none is in force yet."""
        waiting = [one for at, one in self._waiting.items() if one and at not in self._refusals]
        return self.in_force or (waiting[-1] if waiting else None)

    @property
    def refusal(self) -> EventRefused | None:
        """The refusal of the newest declaration; None: workers did not refuse it."""
        return self._refusals.get(self._newest)

    @property
    def waits(self) -> bool:
        """Tell whether no worker has read the newest declaration."""
        return self._newest in self._waiting and self.refusal is None

    def add(
        self,
        offset: int,
        router: RouterDeclared | None,
        *,
        at: float,
        known: int | None,
        again: bool = False,
    ) -> list[News]:
        """Note a declaration; return its news if it is the declaration in force.

        Args:
            known: the offset that `pb.lambda` names, None before its first record.
            again: whether a worker has written the declaration in force again.
        """
        if not again:
            self._newest = offset
        self._waiting[offset] = None if router is None else Portfolio.of(router)
        while len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
        return [] if known is None else self.acknowledge(known, at=at)

    def refuse(self, refusal: EventRefused) -> None:
        """Note that workers refused a declaration."""
        self._refusals[refusal.offset] = refusal
        # An unreadable declaration is refused without being added. A worker may refuse as stale
        # what another worker has written again.
        if refusal.reason != "stale_config":
            self._newest = max(self._newest, refusal.offset)
        while len(self._refusals) > WAITING:
            del self._refusals[next(iter(self._refusals))]

    def acknowledge(self, offset: int, *, at: float) -> list[News]:
        """Put the declaration at an offset in force; return what it changes."""
        if offset == self._offset or offset not in self._waiting:
            return []
        before, after = self.in_force, self._waiting[offset]
        self._offset, self.in_force = offset, after
        # Older declarations were refused, or replaced before a worker took them up.
        self._waiting = {at: one for at, one in self._waiting.items() if at > offset}
        return [] if before is None or after is None else list(differences(before, after, at=at))
