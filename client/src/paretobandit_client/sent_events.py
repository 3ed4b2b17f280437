"""Define the part of the wire contract that this library reads and writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder, Encoder


class Candidate(Struct, frozen=True, kw_only=True):
    """One model as the decision saw it; `excluded` says why it could not be chosen.

    `slow` is the probability that its call takes longer than the router's `p95_ms`.
    """

    model: str
    mean: float
    bonus: float
    penalty: float
    score: float
    expected_cost_usd: float
    excluded: str | None = None
    expected_latency_ms: float | None = None
    slow: float | None = None


class Step(Struct, frozen=True, kw_only=True):
    """One call of a plan: `verify` names the verifier of its answer, which is returned if the
    verdict is `accept_at` or more. `probability` is that of the call being made.
    """

    model: str
    expected_cost_usd: float = 0.0
    probability: float = 1.0
    verify: str | None = None
    accept_at: float | None = None
    verdict_usd: float | None = None


class WouldRoute(Struct, frozen=True, kw_only=True):
    """The router's choice where the incumbent answered; `then` would have followed `model`."""

    model: str
    reason: str
    propensity: float
    then: str | None = None


class Chain(Struct, frozen=True, kw_only=True):
    """The place of a request among requests that follow each other. `tried` are the models that
    have answered before; `known` is False if the router does not remember the request that this one
    follows.
    """

    follows: str
    number: int
    known: bool = True
    tried: tuple[str, ...] = ()


class VariantCall(Struct, frozen=True, kw_only=True):
    """The way to call a model that is a variant of another one, or has parameters."""

    variant_of: str | None = None
    params: dict[str, Any] | None = None


class Call(NamedTuple):
    """A call of a model: the name for its provider, and what goes with the call."""

    model: str
    params: dict[str, Any]


class Route(Struct, frozen=True, kw_only=True):
    """A decision, as it stands on `pb.routes`."""

    router_id: str
    request_id: str
    model: str
    seq: int
    reason: str
    propensity: float
    expected_reward: float
    expected_cost_usd: float
    lambda_t: float
    decided_at: datetime
    repeat: bool
    candidates: tuple[Candidate, ...] | None = None
    fallbacks: tuple[str, ...] = ()
    session_left_usd: float | None = None
    plan: tuple[Step, ...] = ()
    first_propensity: float | None = None
    unknown_verifiers: tuple[str, ...] = ()
    chain: Chain | None = None
    routed_by: str | None = None
    routed_share: float | None = None
    would_route: WouldRoute | None = None
    variant_of: str | None = None
    params: dict[str, Any] | None = None
    variants: dict[str, VariantCall] = {}
    label_wanted: bool = False
    label_probability: float | None = None

    def call_of(self, model: str) -> Call:
        """Return how to call the decided model, or another model of the decision. A model with
        parameters is called by the name of the model that it is a variant of.
        """
        own = VariantCall(variant_of=self.variant_of, params=self.params)
        found = own if model == self.model else self.variants.get(model, VariantCall())
        if found.params is None:
            return Call(model, {})
        return Call(found.variant_of or model, dict(found.params))


class Refusal(Struct, frozen=True, kw_only=True):
    """The record of a dead letter on `pb.refusals`: which event of which topic was refused, and
    why; never its body.
    """

    router_id: str
    request_id: str | None = None
    topic: str
    partition: int = -1
    offset: int = -1
    reason: str
    message: str = ""


class Needs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The needs of a request, met by models that offer them; others are ruled out.

    `output_tokens` is how long the answer may become, `region` where the model has to run,
    `max_retention_days` how long its provider may keep the prompt.
    """

    vision: bool = False
    audio: bool = False
    tools: bool = False
    json_output: bool = False
    output_tokens: int | None = None
    region: str | None = None
    max_retention_days: float | None = None


class Signals(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Signals, besides verdicts, about the answer to the request that another one follows.

    `tests_passed` is a share, `repeats` how often the agent has done the same thing again since,
    and `severity` how bad an error is, from 0 to 1.
    """

    tests_passed: float | None = None
    repeats: int | None = None
    severity: float | None = None


class Ask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request."""

    router_id: str
    request_id: str
    prompt: str | None = None
    context: tuple[float, ...] | None = None
    allowed_models: tuple[str, ...] | None = None
    max_price_per_1k: float | None = None
    input_tokens: int | None = None
    metadata: dict[str, object] | None = None
    session_id: str | None = None
    session_budget_usd: float | None = None
    needs: Needs | None = None
    verifiers: tuple[str, ...] | None = None
    follows: str | None = None
    verdicts: dict[str, float] | None = None
    signals: Signals | None = None


class Cost(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bill, in dollars or in tokens; `model` is the called model, which differs from the decided
    one after a fallback. `status` says how the call ended, None: with an answer. `attempt` numbers
    the calls of the request's plan. `answered_by` is the model that answered, as its provider says.
    """

    router_id: str
    request_id: str
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    model: str | None = None
    revision: int = 0
    status: str | None = None
    retry_after_seconds: float | None = None
    latency_ms: float | None = None
    first_token_ms: float | None = None
    attempt: int | None = None
    answered_by: str | None = None


class Reward(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The quality in [0, 1] of an answer, or without `request_id` of a session, and its source.

    `reward` None withdraws the source's reward; `cant_tell`: the source has seen the answer and
    can't tell.
    """

    router_id: str
    reward: float | None
    source: str
    request_id: str = ""
    session_id: str | None = None
    model: str | None = None
    revision: int = 0
    observed_at: datetime | None = None
    attempt: int | None = None
    cant_tell: bool | None = None


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A verifier's verdict on the answer of one call, in [0, 1]; a verdict is no reward."""

    router_id: str
    request_id: str
    verifier: str
    verdict: float
    attempt: int | None = None
    revision: int = 0


Event = Ask | Cost | Reward | Verdict
TOPIC_OF: dict[type[Event], str] = {
    Ask: "requests",
    Cost: "costs",
    Reward: "rewards",
    Verdict: "rewards",
}
"""Topic of each kind of event, without the prefix."""
KINDS: dict[type[Event], str] = {
    Ask: "request",
    Cost: "bill of",
    Reward: "label of",
    Verdict: "verdict on",
}
"""Name of each kind of event in a sentence."""
decode_route = Decoder(Route).decode
decode_refusal = Decoder(Refusal).decode
encode = Encoder().encode


def called(event: Event) -> str:
    """Return an event's name in a sentence, such as "bill of q-1"."""
    session = event.session_id if isinstance(event, Reward) else None
    return f"{KINDS[type(event)]} {event.request_id or session}"
