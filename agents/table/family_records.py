"""The families of one partition, and what is due of its routers that are members of families."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from agents.interfaces import Table
from agents.table import keys
from router_state.engine import Engine
from router_state.errors import DamagedState
from router_state.families.family_member import Family
from router_state.families.family_owner import BETWEEN, FamilyOwner
from router_state.families.family_pieces import model_of, pack_piece, unpack
from router_state.families.family_reports import Model, Told


class Families:
    """The families, unpacked when first needed and written once per group. The sums that members
    told are read from the table.

    Attributes:
        dirty: families that the present group has changed.
        due: routers whose evidence has grown enough for a report.
        reported: rewards and bills that a router's last report was of; not durable, so that each
            member reports again after a recovery.
        unreadable: families of which a record can't be read, and the reason: what it held is
            forgotten.
    """

    def __init__(self, table: Table, found: Mapping[bytes, list[bytes]]) -> None:
        self._table = table
        self.due: dict[str, None] = {}
        self.reported: dict[str, tuple[int, int]] = {}
        self.unreadable: dict[str, str] = {}
        # By router that waits for its first prior: what came, and whether it is whole.
        self._welcomes: dict[str, tuple[list[Told], asyncio.Event]] = {}
        self.index(found)

    def index(self, found: Mapping[bytes, list[bytes]]) -> None:
        """Take the families from the table, whose keys were found by their kinds."""
        self._owners: dict[str, FamilyOwner | None] = {}
        self._pieces: dict[str, set[str]] = {}
        for raw in found.get(keys.FAMILY, ()):
            _, name, piece = keys.split(raw)
            self._owners[name] = None
            self._pieces.setdefault(name, set()).add(piece)
        self.dirty: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._owners or self.due)

    @property
    def names(self) -> list[str]:
        """Return the names of all families."""
        return list(self._owners)

    def owner(self, name: str) -> FamilyOwner:
        """Return a family; one that is not known, or can't be read, begins."""
        owner = self._owners.get(name)
        if owner is None:
            pieces = self._pieces.setdefault(name, set())
            whole = {one: self._record(name, one) for one in pieces if BETWEEN not in one}
            try:
                owner = unpack(name, whole, self._reader(name)) if whole else None
            except DamagedState as error:
                self.unreadable[name] = str(error)
            if owner is None:
                owner = FamilyOwner(name, self._reader(name))
                owner.changed |= pieces
            self._owners[name] = owner
        return owner

    def _reader(self, name: str) -> Callable[[str], Model | None]:
        def read(piece: str) -> Model | None:
            record = self._table.get(keys.key(keys.FAMILY, name, piece))
            try:
                return None if record is None else model_of(record)
            except DamagedState as error:
                # The member's next report replaces them.
                self.unreadable[name] = str(error)
                return None

        return read

    def _record(self, name: str, piece: str) -> bytes:
        return self._table.get(keys.key(keys.FAMILY, name, piece)) or b""

    def forget(self, name: str) -> None:
        """Drop the unwritten changes that timed work has made to a family."""
        if name in self._owners:
            self._owners[name] = None
        self.dirty.discard(name)

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

    def greeted(self, router_id: str, told: Told) -> bool:
        """Keep a prior of a router that waits for it; return whether it does."""
        if (found := self._welcomes.get(router_id)) is None:
            return False
        found[0].append(told)
        if not told.more:
            found[1].set()
        return True

    def take_welcome(self, router_id: str) -> list[Told] | None:
        """Return what came for a router that has waited; None: it has not."""
        found = self._welcomes.pop(router_id, None)
        return None if found is None else found[0]

    # The table.

    def write(self) -> None:
        """Put the changes into the table."""
        for name in sorted(self.dirty):
            owner = self._owners[name]
            assert owner is not None
            if owner.is_done:
                for piece in sorted(self._pieces.pop(name, ())):
                    self._table.delete(keys.key(keys.FAMILY, name, piece))
                del self._owners[name]
                continue
            for piece in sorted(owner.changed):
                self._write(owner, piece)
            owner.changed.clear()
            owner.fresh.clear()
        self.dirty.clear()

    def _write(self, owner: FamilyOwner, piece: str) -> None:
        at, packed = keys.key(keys.FAMILY, owner.name, piece), pack_piece(owner, piece)
        if packed is None:
            self._pieces[owner.name].discard(piece)
            self._table.delete(at)
        else:
            self._pieces[owner.name].add(piece)
            self._table.put(at, packed)
