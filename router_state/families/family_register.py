"""The members of a family and their reports: sums by member and model, which a table stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import TypeAlias

from msgspec import Struct

from router_state.families.family_reports import Model
from router_state.packing.framing import Whole
from router_state.shared_numbers import Packed

HEAD = ""
"""Name of the piece with the estimates. Each other piece holds one member, one member's sums of one
model, or sums that were copied from another family."""
BETWEEN = "\x1f"
"""Stands between a member and a model in the name of a piece."""

MemberSums: TypeAlias = dict[str, dict[str, bytes]]
"""Sums of rewards, or of bills, by member and model."""

MemberNumbers: TypeAlias = dict[str, dict[str, Packed]]
"""Numbers that capabilities share, by member and model."""


class MemberEntry(Struct, array_like=True, gc=False):
    """Knowledge of the owner about a member; the names are those of `Report`.

    Attributes:
        n: number of the last prior that was sent to the member.
        models: models with sums.
    """

    born: Whole
    n: Whole = 0
    gives: bool = True
    takes: bool = True
    seen: tuple[Whole, Whole] = (0, 0)
    noise: tuple[float, float] = (0.0, 0.0)
    names: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.names, self.models = shared(self.names), shared(self.models)


@lru_cache(maxsize=4096)
def shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return equal names as one object: thousands of members have the same models."""
    return tuple(intern(name) for name in names)


@dataclass(slots=True, eq=False)
class Register:
    """The members of one family.

    Attributes:
        name: the family's name; read: function that returns the stored sums of a piece.
        d, projection: dimensions of contexts, and the projection that makes them; with d 0, nobody
            has joined yet.
        members: members by router_id; brought: models whose sums were copied from another family.
        changed: pieces to be written; fresh: sums that are not written yet.
    """

    name: str
    read: Callable[[str], Model | None]
    d: int = 0
    projection: str = ""
    members: dict[str, MemberEntry] = field(default_factory=dict)
    brought: tuple[str, ...] = ()
    changed: set[str] = field(default_factory=set)
    fresh: dict[str, Model | None] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Tell whether the family has neither members nor knowledge of another family."""
        return not self.members and not self.brought

    @property
    def observations(self) -> int:
        """Return the number of rewards and bills in the members' reports."""
        return sum(sum(one.seen) for one in self.members.values() if one.models)

    def sums(self, member: str, model: str) -> Model | None:
        """Return the sums that a member reported of a model; None: there are none."""
        piece = member + BETWEEN + model
        return self.fresh[piece] if piece in self.fresh else self.read(piece)

    def put(self, member: str, model: str, sums: Model | None) -> None:
        """Keep the sums of a member and a model; None deletes them. Member "" stands for sums that
        were copied from another family.
        """
        piece = member + BETWEEN + model
        self.fresh[piece] = sums
        self.changed.add(piece)

    def each(self) -> Iterator[tuple[str, str, Model]]:
        """Yield each member, each of its models, and the sums that it reported of that model."""
        for member, entry in self.members.items():
            for name in entry.models:
                if (model := self.sums(member, name)) is not None:
                    yield member, name, model

    @property
    def brought_numbers(self) -> dict[str, Packed]:
        """Return the numbers of another family, by model, see `family_shared.Known`."""
        models = {name: self.sums("", name) for name in self.brought}
        return {name: one.shared for name, one in models.items() if one is not None}

    def reported(self) -> tuple[MemberSums, MemberSums, MemberNumbers]:
        """Return what members reported: sums of rewards, sums of bills, and shared numbers."""
        found: tuple[MemberSums, MemberSums] = ({}, {})
        numbers: MemberNumbers = {}
        for member, name, model in self.each():
            for sums, data in zip(found, model.sides, strict=True):
                if data:
                    sums.setdefault(member, {})[name] = data
            if model.shared:
                numbers.setdefault(member, {})[name] = model.shared
        return *found, numbers
