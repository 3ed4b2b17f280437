"""Topic `pools`: one record declares a whole pool; a null value says that it is gone.

Key: pool_id, raw UTF-8, never absent. Version 1. Compatible: new optional fields. Not compatible: a
new required field, another default, another unit.
"""

import math
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from schemas.budgets import Budgets
from schemas.event import CONTENT, Content, Value, decode_declared, documented, optional
from schemas.fields import RouterId, UnitInterval, refuse
from schemas.reasons import Reason

TOPIC: Final = "pools"
KEY: Final = "pool_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_MEMBERS: Final = 10_000
"""Most members that a declaration names."""
ROUNDED: Final = 1e-9
"""Rounding by which shares may be more than 1 together."""


class MemberShare(Content):
    """Bound a member's part of its pool's money, as shares of that money."""

    model_config = ConfigDict(**CONTENT, serialize_by_alias=True, validate_by_name=True)

    least: Annotated[UnitInterval, Field(alias="min", description="Absent: 0")] = 0.0
    most: Annotated[UnitInterval, Field(alias="max", description="Absent: 1")] = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise refuse(Reason.INVALID_FIELD, "has a min above its max")
        return self


class PoolDeclared(Value):
    """Declare a pool: dollars of a period for several routers, or for other pools."""

    model_config = documented(
        TOPIC,
        key=KEY,
        valid=[
            {
                "pool_id": "acme",
                "budget": {"usd": 20000, "per": "month", "timezone": "Europe/Berlin"},
                "members": {"acme.chat": {"max": 0.6}, "acme.search-team": {"min": 0.1}},
            },
            {"pool_id": "acme.search-team", "parent": "acme"},
            {
                "pool_id": "acme.trial",
                "parent": "acme",
                "budget": [{"usd": 50, "per": "day"}, {"usd": 200, "per": "week"}],
                "lease_seconds": 120,
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {"budget": {"usd": 1, "per": "day"}},
            Reason.INVALID_FIELD: {"pool_id": "acme"},
        },
    )

    key_name = KEY

    pool_id: RouterId
    budget: Budgets | None = optional("Dollars of a period; of several the tightest binds")
    parent: RouterId | None = optional("The pool whose money it has part in")
    members: Annotated[dict[RouterId, MemberShare], Field(max_length=MAX_MEMBERS)] | None = (
        optional(
            "Shares of routers and pools; whoever names this pool and is not here has any share"
        )
    )
    lease_seconds: Annotated[float, Field(ge=5, le=86_400)] | None = optional(
        "How long a grant lasts unless it is renewed; absent: 600"
    )

    @property
    def key(self) -> str:
        """The key of its record."""
        return self.pool_id

    @model_validator(mode="after")
    def _has_money(self) -> Self:
        if self.budget is None and self.parent is None:
            raise refuse(Reason.INVALID_FIELD, "the pool has neither a budget nor a parent")
        if self.parent == self.pool_id:
            raise refuse(Reason.INVALID_FIELD, "the pool is its own parent")
        shares = [share.least for share in (self.members or {}).values()]
        if math.fsum(shares) > 1.0 + ROUNDED:
            raise refuse(
                Reason.INVALID_FIELD, "the pool has members whose min are more than 1 together"
            )
        return self


def decode_pool(*, key: bytes | None, value: bytes | None) -> tuple[str, PoolDeclared | None]:
    """Return the pool's id and its declaration; None instead of a declaration: the pool is gone.
    See `decode_declared`."""
    return decode_declared(PoolDeclared, key=key, value=value)
