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
UNANSWERED = FAILED | {"rate_limited", "cancelled", "gone"}
"""Statuses of calls whose bill does not tell the cost of an answer."""


class Needs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Needs of a request, see `needs.offers.Offers`.

    Attributes:
        output_tokens: largest length of the answer, in tokens.
        region: region in which the model has to run.
        max_retention_days: days for which the provider may keep the prompt.
    """

    vision: bool = False
    audio: bool = False
    tools: bool = False
    json_output: bool = False
    output_tokens: int | None = None
    region: str | None = None
    max_retention_days: float | None = None


class Follows(Struct, frozen=True, gc=False):
    """The request that another one follows, and how good its answer was found to be.

    Attributes:
        verdicts: of its last answer, by verifier.
        signals: by name: `tests_passed` and `severity` in [0, 1], `repeats` ≥ 0.
    """

    request_id: str
    verdicts: Mapping[str, float] = {}
    signals: Mapping[str, float] = {}


class Asked(Struct, frozen=True, gc=False):
    """A request wants a model.

    Attributes:
        x: context, shape (d,), last entry 1.0.
        offset: where in `pb.requests` it was read.
        allowed_models: the only models that may be called; None: all. max_price_per_1k: highest
            list price of a model that may be called, in dollars per 1k tokens.
        input_tokens: number of tokens of the prompt; None: not stated.
        needs: what the model must be able to do; None: not stated.
        session_id: the conversation that the request belongs to.
        follows: the request that it follows, with verdicts and signals about that request's answer.
        fields: those of capabilities, by their names, see `registered.request_fields`.
        contained: last offsets of `pb.costs` and `pb.rewards` that the state contains (−1: none);
            the request's record keeps them.
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
    fields: Mapping[str, Json] | None = None
    follows: Follows | None = None

    def field_of(self, name: str) -> Json:
        """Return a capability's part of the request; None: the request has no such part."""
        return None if self.fields is None else self.fields.get(name)


class Charged(Struct, frozen=True, gc=False):
    """A request's bill came, in dollars, or in input and output tokens at the prices of the
    decision.

    `model` is the model that was called, where that is known: a caller that did not wait for the
        decision may have called another. `x` is the context, shape (d,), where the record does not
        hold it. `offset` is the bill's offset in `pb.costs`; `waited`: whether the bill came
        before its decision. `status` is how the call ended (None: with an answer). `retry_after`
        is the number of seconds for which the model asks for no calls. `cached` is the number of
        input tokens billed as cached. `latency` and `first_token` are seconds from the call to the
        answer and to its first token. `attempt` numbers the calls of the request's plan.
        `answered_by` is the model that answered, as its provider says; None: not stated.
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
    answered_by: str | None = None


class Judged(Struct, frozen=True, gc=False):
    """A request's reward came, in [0, 1]; None: its source withdraws its reward. `rank` is the rank
    of its source. `model`, `x`, `offset` and `waited` are as in `Charged`.

    A `request_id` that begins with `sessions.credit.WHOLE` names a session: `contexts` are the
    contexts of its requests that their records do not hold. `attempt` is the number of the
    rewarded call in the request's plan; None: the last call.
    """

    request_id: str
    reward: float | None
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
    """A verifier's verdict on an answer came, in [0, 1]. `attempt` is the number of the call in
    its request's plan; `x`, `offset` and `waited` are as in `Judged`.
    """

    request_id: str
    verifier: str
    verdict: float
    attempt: int = 0
    revision: int = 0
    x: Vector | None = None
    offset: int = -1
    waited: bool = False


class Orphaned(Struct, frozen=True, gc=False):
    """A bill came whose request never got a decision. Its dollars are counted apart from
    `spend_usd`.
    """

    cost_usd: float


class Redeclared(Struct, frozen=True, gc=False):
    """A new declaration is to be put in force."""

    config: RouterConfig


class Waited(Struct, frozen=True, gc=False):
    """Time has passed: commitments older than their time limit expire, at most `limit` of them,
    the oldest first.
    """

    limit: int = AT_MOST


class Aged(Struct, frozen=True, gc=False):
    """Requests decided before this time (seconds since the epoch) are forgotten, at most `limit`
    of them. Arms retired before this time are forgotten, too.
    """

    before: float
    limit: int = AT_MOST


class Crowded(Struct, frozen=True, gc=False):
    """The oldest requests are forgotten until `keep` are left, at most `limit` of them."""

    keep: int
    limit: int = AT_MOST


class OfCapability(Struct, frozen=True):
    """An event that only one capability knows, which applies it in `Capability.applied`."""


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
    "Follows",
    "Judged",
    "Needs",
    "OfCapability",
    "Orphaned",
    "Redeclared",
    "Verified",
    "Waited",
]
