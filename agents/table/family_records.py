"""The families of one partition, and the reports that its routers owe to their families."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from agents.table import Table, keys
from agents.table.owners import Owners
from router_state.engine import Engine
from router_state.errors import DamagedState
from router_state.families.family_member import Family
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_pieces import model_of, pack_piece, unpack
from router_state.families.family_register import BETWEEN
from router_state.families.family_reports import MemberPrior, Model


class Families(Owners[FamilyOwner]):
    """The families of one partition, and which of its routers are due to report to theirs. Sums
    that members reported are read from the table.

    Attributes:
        due: routers whose evidence has grown enough for a report.
        reported: rewards and bills that a router's last report was of; not durable, so that each
            member reports again after a recovery.
    """

    kind = keys.FAMILY

    def __init__(self, table: Table, found: Mapping[bytes, list[bytes]]) -> None:
        super().__init__(table, found)
        self.due: dict[str, None] = {}
        self.reported: dict[str, tuple[int, int]] = {}
        # By router that waits for its first prior: what came, and whether it is whole.
        self._welcomes: dict[str, tuple[list[MemberPrior], asyncio.Event]] = {}

    def __bool__(self) -> bool:
        return bool(self._owners or self.due)

    def owner(self, name: str) -> FamilyOwner:
        """Return a family; one that is not known, or can't be read, begins."""
        return self.get(name) or self._start(name, FamilyOwner(name, self._reader(name)))

    def _unpack(self, name: str, pieces: Collection[str]) -> FamilyOwner:
        whole = {one: self.record(name, one) for one in pieces if BETWEEN not in one}
        return unpack(name, whole, self._reader(name))

    def _pack(self, owner: FamilyOwner, piece: str) -> bytes | None:
        return pack_piece(owner, piece)

    def _reader(self, name: str) -> Callable[[str], Model | None]:
        def read(piece: str) -> Model | None:
            try:
                return model_of(record) if (record := self.record(name, piece)) else None
            except DamagedState as error:
                self.note_damaged(name, piece, error)
                return None  # the member's next report replaces them

        return read

    def write(self) -> None:
        """Put the changes into the table, from which sums are read from then on."""
        written = [self._owners[name] for name in self.dirty]
        super().write()
        for owner in filter(None, written):
            owner.fresh, owner.changed = {}, set(owner.changed)

    def changed(self, router_id: str, engine: Engine) -> None:
        """Note that a router has changed."""
        member = engine.state.having(Family)
        if member is not None and member.is_due(self.reported.get(router_id, (0, 0))):
            self.due[router_id] = None

    def gone(self, router_id: str) -> None:
        """Forget a router that is no member any more."""
        self.due.pop(router_id, None)
        self.reported.pop(router_id, None)

    # Newcomers.

    def welcome(self, router_id: str) -> asyncio.Event:
        """Return the event that is set when a router that is not declared yet has its first
        prior."""
        self._welcomes[router_id] = [], asyncio.Event()
        return self._welcomes[router_id][1]

    def greeted(self, router_id: str, prior: MemberPrior) -> bool:
        """Keep a prior for a router that waits for its first priors; return whether the router
        waits.
        """
        if (found := self._welcomes.get(router_id)) is None:
            return False
        found[0].append(prior)
        if not prior.more:
            found[1].set()
        return True

    def take_welcome(self, router_id: str) -> list[MemberPrior] | None:
        """Return the priors that have come for a waiting router, which stops waiting; None: the
        router did not wait.
        """
        found = self._welcomes.pop(router_id, None)
        return None if found is None else found[0]
