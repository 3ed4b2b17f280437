"""Define the events that the engine applies to a router."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from router_state.config import RouterConfig, Vector
from router_state.packing.framing import Json

AT_MOST = 10_000
"""Most requests that one sweep moves by default."""
FAILED = frozenset({"error", "timeout"})
"""Statuses of a model that did not answer."""
UNANSWERED = FAILED | {"rate_limited", "cancelled"}
"""Statuses of calls whose bill does not tell the cost of an answer."""


class Needs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Needs of a request, see `needs.offers.Offers`.

    Attributes:
        output_tokens: how long the answer may become.
        region: where the model has to run.
        max_retention_days: how long the provider may keep the prompt.
    """

    vision: bool = False
    audio: bool = False
    tools: bool = False
    json_output: bool = False
    output_tokens: int | None = None
    region: str | None = None
    max_retention_days: float | None = None


class Asked(Struct, frozen=True, gc=False):
    """A request wants a model.

    Attributes:
        x: context, shape (d,), last entry 1.0.
        offset: where in `pb.requests` it was read.
        allowed_models: only these, whatever they cost.
        max_price_per_1k: only models with a list price up to this, in dollars per 1k tokens.
        input_tokens: how many its prompt has; None: it does not say.
        needs: what the model must be able to do; None: it does not say.
        session_id: the conversation that it belongs to.
        said: what it says of capabilities, by their names, see `registered.asked`.
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
    needs: Needs | None = None
    session_id: str | None = None
    said: Mapping[str, Json] | None = None

    def said_of(self, name: str) -> Json:
        """Return what it says of a capability; None: nothing."""
        return None if self.said is None else self.said.get(name)


class Charged(Struct, frozen=True, gc=False):
    """A request's bill came, in dollars or, priced as at the decision, in input and output tokens.

    `model` is which one was called, where that is known: another one than was decided if the caller
    could not wait. `x` is the context, shape (d,), where the record does not hold it. `offset` is
    where in `pb.costs` it was read, `waited` whether that was before its decision. `status` is how
    the call ended (None: with an answer), `retry_after` for how many seconds the model wants to be
    left alone, `cached` how many of the input tokens were billed as cached. `latency` and
    `first_token` are seconds from the call to the answer and to its first token. `attempt` numbers
    the calls of the request's plan.
    """

    request_id: str
    cost_usd: float | None = None
    tokens: tuple[int, int] | None = None
    model: str | None = None
    revision: int = 0
    x: Vector | None = None
    offset: int = -1
    waited: bool = False
    status: str | None = None
    retry_after: float | None = None
    cached: int | None = None
    latency: float | None = None
    first_token: float | None = None
    attempt: int = 0


class Judged(Struct, frozen=True, gc=False):
    """A request's reward came, in [0, 1]; `rank` is that of its source, `model`, `x`, `offset`
    and `waited` as of a bill.

    A `request_id` that begins with `sessions.credit.WHOLE` is a session: `contexts` are those of
    its requests that their records do not hold. `attempt` is which call of the request's plan it is
    of; None: of the last one.
    """

    request_id: str
    reward: float
    source: str = "judge"
    rank: int = 0
    model: str | None = None
    revision: int = 0
    x: Vector | None = None
    offset: int = -1
    waited: bool = False
    contexts: Mapping[str, Vector] | None = None
    attempt: int | None = None


class Verified(Struct, frozen=True, gc=False):
    """A verifier's verdict on an answer came, in [0, 1]; `attempt` is the number of the call in its
    request's plan, `x`, `offset` and `waited` are as of a reward."""

    request_id: str
    verifier: str
    verdict: float
    attempt: int = 0
    revision: int = 0
    x: Vector | None = None
    offset: int = -1
    waited: bool = False


class Orphaned(Struct, frozen=True, gc=False):
    """A bill came whose request never got a decision: money all the same, apart from
    `spend_usd`."""

    cost_usd: float


class Redeclared(Struct, frozen=True, gc=False):
    """Another declaration is to be put in force."""

    config: RouterConfig


class Waited(Struct, frozen=True, gc=False):
    """Time has passed: commitments older than their time limit expire, at most `limit`, the oldest
    first."""

    limit: int = AT_MOST


class Aged(Struct, frozen=True, gc=False):
    """Requests decided before this time (seconds since the epoch) are forgotten, at most `limit`;
    so are arms retired before it."""

    before: float
    limit: int = AT_MOST


class Crowded(Struct, frozen=True, gc=False):
    """Requests beyond `keep` are forgotten, at most `limit`."""

    keep: int
    limit: int = AT_MOST


class OfCapability(Struct, frozen=True):
    """An event of a capability's own, which gets it by `Capability.applied`."""


Event = (
    Asked
    | Charged
    | Judged
    | Verified
    | Orphaned
    | Redeclared
    | OfCapability
    | Waited
    | Aged
    | Crowded
)

__all__ = [
    "AT_MOST",
    "Aged",
    "Asked",
    "Charged",
    "Crowded",
    "Event",
    "Judged",
    "Needs",
    "OfCapability",
    "Orphaned",
    "Redeclared",
    "Verified",
    "Waited",
]
