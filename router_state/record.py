"""Define what a record of a request holds beside its numbers."""

from __future__ import annotations

from collections.abc import MutableMapping

from msgspec import Struct

from router_state.cache_price import CachePrice
from router_state.kernel import Label, RequestRecord, Settlement


class Basis(Struct, frozen=True, gc=False):
    """The last events that the state contained when it decided: with the events themselves, enough
    to decide again.

    Last offsets of `pb.costs` and `pb.rewards` (−1: none), how many commitments had expired, and
    the same two offsets when the declaration in force had come in force.
    """

    costs: int
    rewards: int
    expired: int
    declared_costs: int
    declared_rewards: int


class Call(Struct, gc=False, frozen=True, omit_defaults=True):
    """Further facts about the call of a request, if it was not simply made and answered.

    `unanswered`: its bills so far are of attempts that failed, and cost `lost_usd`. `nth` numbers
    the calls of a model that is watched, see `availability`. `session_id` is its conversation,
    `before` its request before, and `warm` the tokens of it that each model had in its cache.
    `cache` is what cached input of the decided model cost then. `wait` is what its time counts for
    so far, in the unit of the target. `lost_seconds` is how long attempts that failed took.
    """

    unanswered: bool = False
    lost_usd: float = 0.0
    nth: int = 0
    session_id: str | None = None
    warm: dict[str, int] = {}
    before: str | None = None
    cache: CachePrice | None = None
    wait: float | None = None
    lost_seconds: float = 0.0


Records = MutableMapping[str, RequestRecord]
"""Requests of a router by request_id; who changes one assigns it back."""
__all__ = [
    "Basis",
    "Call",
    "Label",
    "Records",
    "RequestRecord",
    "Settlement",
]
