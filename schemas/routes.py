"""Topic `routes`: the decision for one request.

Key: router_id, raw UTF-8. Version 1. Compatible: new fields, new values of `reason` and `excluded`.
Not compatible: a missing field, another unit.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from schemas.event import Content, Event, documented, optional
from schemas.fields import (
    LARGEST_INT,
    Count,
    Label,
    ModelName,
    NonNegative,
    RequestId,
    UnitInterval,
    UtcTime,
)
from schemas.model_calls import Params, VariantCall
from schemas.reasons import Reason
from schemas.verifiers import PlanStep, Verifiers

TOPIC: Final = "routes"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""

Offset = Annotated[
    int,
    Field(
        ge=-1,
        le=LARGEST_INT,
        description="Last offset of the topic, on the router's partition; -1: none",
    ),
]


STEPS: Final = r"^(\?|[A-Za-z][0-9@.,e+-]+( [A-Za-z][0-9@.,e+-]+)*)?$"
MOST_LETTERS: Final = 8_000
"""Pattern of `Applied.since`, and its most letters: far more than a worker writes."""


class RouteReason(StrEnum):
    """Name what made the choice."""

    UCB = "ucb"
    ONBOARDING = "onboarding"
    PROBE = "probe"
    CEILING_RELAXED = "ceiling_relaxed"
    CAPPED = "capped"
    SESSION_BUDGET = "session_budget"
    INCUMBENT = "incumbent"


RoutedBy = Literal["router", "incumbent", "holdout"]


class FamilyCount(Content):
    """Say how many requests of other routers the evidence about a model counts for."""

    requests: NonNegative


class WouldRoute(Content):
    """The router's own choice, where the request was left to the incumbent."""

    model: ModelName
    reason: RouteReason
    propensity: Annotated[
        UnitInterval, Field(description="Probability with which the router would have chosen it")
    ]
    then: ModelName | None = optional(
        "The model that would have followed if the first answer had not passed; absent: none"
    )


class Chain(Content):
    """Show the place of a request among those that follow each other."""

    follows: RequestId
    number: Annotated[int, Field(ge=1, description="Its number in the chain")]
    known: bool | None = optional(
        "False: the router does not remember the request that it follows, and has decided as if it "
        "followed none; absent: it does"
    )
    tried: tuple[ModelName, ...] | None = optional(
        "The models that have answered before, which are ruled out while there are others"
    )


class Candidate(Content):
    """Show one model as the decision saw it; score = mean + bonus - penalty."""

    model: ModelName
    mean: float
    bonus: float
    penalty: float
    score: float
    expected_cost_usd: NonNegative
    excluded: Label | None = Field(description="Why this model could not be chosen; null: it could")
    shared: float | None = optional("Part of the mean that all models of the router have in common")
    deviation: NonNegative | None = optional("Of the mean: how far it may be off")
    cost_low_usd: NonNegative | None = optional("One bill in ten is expected below")
    cost_high_usd: NonNegative | None = optional("One bill in ten is expected above")
    unpaid: Annotated[float, Field(ge=0, le=1)] | None = optional(
        "Probability that the bill is of nothing; apart from the range"
    )
    expected_latency_ms: NonNegative | None = optional(
        "Expected time of the call, where the router has a target of latency"
    )
    slow: Annotated[float, Field(ge=0, le=1)] | None = optional(
        "Probability that the call takes longer than the router's p95_ms"
    )


class Applied(Content):
    """Say what the router's state contained when it decided; with the topics, enough to decide
    again.
    """

    costs: Offset
    rewards: Offset
    expired: Annotated[Count, Field(description="Commitments whose bill had not come in time")]
    declared_costs: Annotated[
        Offset, Field(description="As `costs`, when the declaration in force had come in force")
    ]
    declared_rewards: Annotated[
        Offset, Field(description="As `rewards`, when the declaration in force had come in force")
    ]
    request: Offset | None = optional("Offset of the request that it answers")
    since: Annotated[str, Field(pattern=STEPS, max_length=MOST_LETTERS)] | None = optional(
        "What was applied since the decision before, in its order, as steps between blanks: c12 "
        "bills up to offset 12, r7 rewards up to 7, C9 and R4 a bill and a reward that had waited "
        "for the decision before, d3@T the declaration at 3 at second T, x2 commitments expired, "
        "l5 the pool's grant at offset 5, p6 the family's prior at 6, f40 requests up to seq 40 "
        "forgotten, g41-43,45 those forgotten, tT models retired before T dropped; ?: more than "
        "fits, the order was not kept"
    )


class RouteDecided(Event):
    """Answer one request: the model to call, and every term that led to it."""

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "model": "mistral-large",
                "seq": 1,
                "reason": "ucb",
                "propensity": 1.0,
                "candidates": [
                    {
                        "model": "llama-3.1-8b",
                        "mean": 0.79,
                        "bonus": 0.002,
                        "penalty": 0.004,
                        "score": 0.788,
                        "expected_cost_usd": 2.9e-05,
                        "excluded": None,
                    },
                    {
                        "model": "mistral-large",
                        "mean": 0.92,
                        "bonus": 0.003,
                        "penalty": 0.08,
                        "score": 0.843,
                        "expected_cost_usd": 0.00053,
                        "excluded": None,
                    },
                ],
                "fallbacks": ["llama-3.1-8b"],
                "expected_reward": 0.92,
                "expected_cost_usd": 0.00053,
                "lambda_t": 0.1,
                "config_offset": 0,
                "decided_at": "2026-11-21T09:30:00.125Z",
                "applied": {
                    "costs": 41,
                    "rewards": -1,
                    "expired": 0,
                    "declared_costs": -1,
                    "declared_rewards": -1,
                    "request": 7,
                    "since": "d0 c41",
                },
                "repeat": False,
            },
            {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "model": "mistral-large",
                "seq": 1,
                "reason": "ucb",
                "propensity": 1.0,
                "expected_reward": 0.92,
                "expected_cost_usd": 0.00053,
                "lambda_t": 0.1,
                "config_offset": 0,
                "decided_at": "2026-11-21T09:30:00.125Z",
                "repeat": True,
            },
        ],
        invalid={
            Reason.MISSING_FIELD: {
                "router_id": "acme.chat",
                "request_id": "r-1",
                "model": "mistral-large",
            }
        },
    )

    request_id: RequestId
    model: ModelName
    seq: Annotated[
        int, Field(ge=1, description="Counts the router's decisions from 1 without gaps")
    ]
    reason: RouteReason
    propensity: Annotated[
        float, Field(ge=0, le=1, description="Probability with which this model was chosen")
    ]
    candidates: tuple[Candidate, ...] | None = optional(
        "The whole portfolio; may be left out of a repeat"
    )
    fallbacks: tuple[ModelName, ...] | None = optional(
        "The next best models under the same budget, best first; absent: there is none, or a repeat"
    )
    plan: tuple[PlanStep, ...] | None = optional(
        "The calls that may follow each other, the first one that of `model`; absent: one call"
    )
    first_propensity: Annotated[float, Field(ge=0, le=1)] | None = optional(
        "Of a plan: probability with which `model` was to be called first, whatever follows; "
        "`propensity` is that of the whole plan"
    )
    unknown_verifiers: Verifiers | None = optional(
        "Verifiers that the request named and the router does not declare: they look at nothing; "
        "absent: there is none, or a repeat"
    )
    chain: Chain | None = optional("Its place in the chain; absent: it follows no request")
    session_id: Label | None = optional("The session that the request named, if it did")
    session_left_usd: float | None = optional(
        "US dollars left of the session's budget, this call's expected cost taken off; below 0: "
        "more is charged; absent: it has none"
    )
    routed_by: RoutedBy | None = optional(
        "Who answered: the router, or the incumbent, which a share of the requests or the hold-out "
        "is left to; absent: the router has no incumbent"
    )
    routed_share: UnitInterval | None = optional(
        "Probability with which the router answered a request like this one; 0 and 1: the request "
        "compares nothing"
    )
    would_route: WouldRoute | None = optional(
        "What the router would have answered; absent: it did answer"
    )
    family: FamilyCount | None = optional(
        "What the router knows of `model` by its family; absent: nothing"
    )
    variant_of: ModelName | None = optional(
        "The model that the decided one is a variant of: what is called where there are params"
    )
    params: Params | None = optional("What goes with the call of the decided model")
    variants: dict[ModelName, VariantCall] | None = optional(
        "How the other models that the decision names are called, where they are variants"
    )
    label_wanted: bool | None = optional(
        "True: a person is asked to label the answer; absent: nobody is"
    )
    label_probability: UnitInterval | None = optional(
        "Probability with which a person was to be asked; absent: the router has no budget of "
        "labels"
    )
    expected_reward: float
    expected_cost_usd: NonNegative
    lambda_t: Annotated[float, Field(ge=0, description="As used for this decision")]
    config_offset: Annotated[Count, Field(description="Offset of the declaration in force")]
    decided_at: UtcTime
    applied: Applied | None = optional("What the state contained when it decided")
    repeat: Annotated[bool, Field(description="True: an answer that was given before, given again")]
