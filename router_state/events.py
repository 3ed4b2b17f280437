"""What can happen to a router, as data: what the engine applies."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from router_state.config import RouterConfig, Vector

AT_MOST = 10_000
"""Requests that one sweep moves, unless its caller says fewer."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request wants a model.

    Attributes:
        x: context, shape (d,), last entry 1.0.
        offset: where in `pb.requests` it was read.
        allowed_models: only these, whatever they cost.
        max_price_per_1k: only models with a list price up to this, in dollars per 1k tokens.
        input_tokens: how many its prompt has; None: it does not say.
        contained: last offsets of `pb.costs` and `pb.rewards` that the state contains (−1: none);
            the record keeps them.
    """

    request_id: str
    x: Vector
    offset: int = -1
    allowed_models: Collection[str] | None = None
    max_price_per_1k: float | None = None
    input_tokens: int | None = None
    contained: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Charged:
    """A request's bill came, in dollars or, priced as at the decision, in input and output tokens.

    `model` is which one was called, where that is known: another one than was decided if the caller
    could not wait. `x` is the context, shape (d,), where the record does not hold it. `offset` is
    where in `pb.costs` it was read, `waited` whether that was before its decision.
    """

    request_id: str
    cost_usd: float | None = None
    tokens: tuple[int, int] | None = None
    model: str | None = None
    revision: int = 0
    x: Vector | None = None
    offset: int = -1
    waited: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A request's reward came, in [0, 1]; `rank` is that of its source, `model`, `x`, `offset`
    and `waited` as of a bill."""

    request_id: str
    reward: float
    source: str = "judge"
    rank: int = 0
    model: str | None = None
    revision: int = 0
    x: Vector | None = None
    offset: int = -1
    waited: bool = False


@dataclass(frozen=True, slots=True)
class Orphaned:
    """A bill came whose request never got a decision: money all the same, apart from
    `spend_usd`."""

    cost_usd: float


@dataclass(frozen=True, slots=True)
class Redeclared:
    """Another declaration is to be put in force."""

    config: RouterConfig


@dataclass(frozen=True, slots=True)
class Waited:
    """Time has passed: commitments older than their time limit expire, at most `limit`, the oldest
    first."""

    limit: int = AT_MOST


@dataclass(frozen=True, slots=True)
class Aged:
    """Requests decided before this time (seconds since the epoch) are forgotten, at most `limit`;
    so are arms retired before it."""

    before: float
    limit: int = AT_MOST


@dataclass(frozen=True, slots=True)
class Crowded:
    """Requests beyond `keep` are forgotten, at most `limit`."""

    keep: int
    limit: int = AT_MOST


Event = Asked | Charged | Judged | Orphaned | Redeclared | Waited | Aged | Crowded
