"""Hold the pools, or the families, whose owner is one partition, in its durable table."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Generic, Protocol, TypeVar

from agents.table import Table, keys
from router_state.errors import DamagedState

log = logging.getLogger(__name__)


class Owner(Protocol):
    """A pool or a family; `changed` names the pieces that differ from what was last written."""

    changed: set[str]

    @property
    def is_done(self) -> bool:
        """Tell whether nothing is left of the pool or the family."""


O = TypeVar("O", bound=Owner)  # noqa: E741


class Owners(ABC, Generic[O]):
    """The pools, or the families, of one partition: unpacked when needed, written once per group.

    Attributes:
        kind: kind of their keys.
        dirty: pools or families that the present group has changed.
        unreadable: pools or families with a record that can't be read, and the reason.
        damaged: names and pieces of records that were found damaged, and were not written since.
    """

    kind: ClassVar[bytes]

    def __init__(self, table: Table, found: Mapping[bytes, list[bytes]]) -> None:
        self._table = table
        self.index(found)

    def index(self, found: Mapping[bytes, list[bytes]]) -> None:
        """Index the pools or families by their keys in the table, `found` by kind."""
        self._owners: dict[str, O | None] = {}
        # Keys are the table's own objects: names of pieces would be kept beside them.
        self._keys: dict[str, set[bytes]] = {}
        for raw in found.get(self.kind, ()):
            _, name, _ = keys.split(raw)
            self._owners[name] = None
            self._keys.setdefault(name, set()).add(raw)
        self.dirty: set[str] = set()
        self.unreadable: dict[str, str] = {}
        self.damaged: set[tuple[str, str]] = set()
        self._unpublished: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """Return the names of all pools or families."""
        return list(self._owners)

    def get(self, name: str) -> O | None:
        """Return a pool or a family by its name; None if there is none of this name, or its records
        can't be read.
        """
        found = self._owners.get(name)
        if found is None and name in self._owners and name not in self.unreadable:
            try:
                found = self._owners[name] = self._unpack(name, self._pieces(name))
            except DamagedState as error:
                self.unreadable[name] = str(error)
                self.note_damaged(name, "", error)
        return found

    def note_damaged(self, name: str, piece: str, why: DamagedState) -> None:
        """Note that a record can't be read, until it is written again. Log the fault, and publish
        it, once.
        """
        if (name, piece) not in self.damaged:
            self.damaged.add((name, piece))
            self._unpublished[name] = str(why)
            log.error("%s %s can't be read: %s", keys.OF[self.kind], name, why)

    def take_unpublished(self) -> dict[str, str]:
        """Return the pools or families with records found damaged since the last call, and the
        reasons."""
        taken, self._unpublished = self._unpublished, {}
        return taken

    def _start(self, name: str, owner: O) -> O:
        """Add one that begins. Records under its name that can't be read are overwritten."""
        self._owners[name] = owner
        self._keys.setdefault(name, set())
        owner.changed |= self._pieces(name)
        self.unreadable.pop(name, None)
        return owner

    def _pieces(self, name: str) -> set[str]:
        """Return the names of the pieces that the table has of one."""
        return {keys.split(raw)[2] for raw in self._keys[name]}

    @abstractmethod
    def _unpack(self, name: str, pieces: Collection[str]) -> O:
        """Return one from its records. Raises DamagedState."""

    @abstractmethod
    def _pack(self, owner: O, piece: str) -> bytes | None:
        """Return one piece as a record; None if the piece no longer exists."""

    def record(self, name: str, piece: str) -> bytes:
        """Return the record of a piece; an empty one if there is none."""
        return self._table.get(keys.key(self.kind, name, piece)) or b""

    def forget(self, name: str) -> None:
        """Drop the unwritten changes that timed work has made to a pool or a family."""
        if self._keys.get(name):
            self._owners[name] = None
        else:
            self._owners.pop(name, None)
        self.dirty.discard(name)

    def write(self) -> None:
        """Put the changes into the table."""
        for name in sorted(self.dirty):
            owner = self._owners[name]
            assert owner is not None
            if owner.is_done:
                self._drop(name)
                continue
            for piece in sorted(owner.changed.difference(self._held_back(name))):
                self._write(name, owner, piece)
        self.dirty.clear()

    def _held_back(self, name: str) -> Collection[str]:
        """Return the pieces that are not written yet."""
        return ()

    def _write(self, name: str, owner: O, piece: str) -> int:
        """Put one piece into the table; return its approximate bytes in a record batch."""
        owner.changed.discard(piece)
        self.damaged.discard((name, piece))
        at, packed = keys.key(self.kind, name, piece), self._pack(owner, piece)
        if packed is None:
            self._keys[name].discard(at)
            self._table.delete(at)
            return len(at)
        self._keys[name].add(at)
        self._table.put(at, packed)
        return len(at) + len(packed)

    def _drop(self, name: str) -> None:
        del self._owners[name]
        for at in sorted(self._keys.pop(name)):
            self._table.delete(at)
