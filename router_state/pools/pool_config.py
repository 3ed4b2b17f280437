"""A pool as declared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from ground.json_values import Document
from router_state.errors import InvalidConfig
from router_state.packing.framing import decoded
from router_state.periods.budget_fields import BudgetsOnWire, budgets_of
from router_state.periods.spending import KeptBudget, PeriodBudget

LEASE_SECONDS = 600.0
"""Seconds for which a grant lasts unless it is renewed, by default."""


class ShareOnWire(Protocol):
    """The declared least and largest share of a member."""

    @property
    def least(self) -> float: ...
    @property
    def most(self) -> float: ...


class OnWire(Protocol):
    """A pool's declaration."""

    @property
    def budget(self) -> BudgetsOnWire: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def members(self) -> Mapping[str, ShareOnWire] | None: ...
    @property
    def lease_seconds(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Share:
    """Least and largest share of a pool's money for a member."""

    least: float = 0.0
    most: float = 1.0


ANY: Share = Share()
"""Bounds of a member that the declaration does not name."""


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """One budget for several members.

    Attributes:
        budgets: the pool's own budgets.
        parent: id of the pool that this pool is a member of.
        shares: bounds by member's id.
        lease_seconds: seconds for which a grant lasts unless it is renewed.
        offset: offset of the declaration on its topic.
    """

    budgets: tuple[PeriodBudget, ...] = ()
    parent: str | None = None
    shares: Mapping[str, Share] = field(default_factory=lambda: MappingProxyType({}))
    lease_seconds: float = LEASE_SECONDS
    offset: int = -1

    def __post_init__(self) -> None:
        identities = [budget.identity for budget in self.budgets]
        if len(set(identities)) < len(identities):
            raise InvalidConfig("two budgets are of the same period: keep the smaller one")
        if math.fsum(share.least for share in self.shares.values()) > 1.0 + 1e-9:
            raise InvalidConfig("what members get at least is more than the pool")

    @classmethod
    def read(cls, wire: OnWire, *, offset: int) -> PoolConfig:
        """Return a pool's declaration on the wire.

        Raises:
            InvalidConfig: two budgets have the same period, or this machine does not know a time
            zone.
        """
        seconds, members = wire.lease_seconds, wire.members or {}
        return cls(
            budgets_of(wire.budget),
            wire.parent,
            {name: Share(one.least, one.most) for name, one in members.items()},
            LEASE_SECONDS if seconds is None else seconds,
            offset,
        )

    def share(self, member: str) -> Share:
        """Return the bounds of a member's share; `member` is "router:" or "pool:" and an id."""
        return self.shares.get(member.partition(":")[2], ANY)

    def pack(self) -> Document:
        """Return the declaration as JSON's types; infinity, which JSON lacks, becomes null."""
        budgets = [asdict(budget) for budget in self.budgets]
        for budget in budgets:
            budget["carry"] = None if math.isinf(budget["carry"]) else budget["carry"]
        return {
            "budgets": budgets,
            "parent": self.parent,
            "shares": {name: [one.least, one.most] for name, one in self.shares.items()},
            "lease_seconds": self.lease_seconds,
            "offset": self.offset,
        }

    @classmethod
    def unpack(cls, body: bytes) -> PoolConfig:
        """Invert `pack`, as JSON. Raises DamagedState, InvalidConfig."""
        kept = decoded(body, _Kept, "the declaration of a pool")
        budgets = tuple(budget.unpacked() for budget in kept.budgets)
        shares = {name: Share(*one) for name, one in kept.shares.items()}
        return cls(budgets, kept.parent, shares, kept.lease_seconds, kept.offset)


class _Kept(Struct):
    budgets: list[KeptBudget]
    parent: str | None
    shares: dict[str, tuple[float, float]]
    lease_seconds: float
    offset: int
