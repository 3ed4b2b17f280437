"""Topic `lambda`: the dual variable of one router and the money behind it; the last record counts.

Key: router_id, raw UTF-8. Version 1. Compatible: new fields. Not compatible: a missing field,
another unit.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from schemas.event import Content, Event, documented, optional
from schemas.families import FamilyStanding
from schemas.fields import Count, ModelName, NonNegative, RouterId, UtcTime
from schemas.label_asking import LabelsStanding
from schemas.label_sources import SourceStanding
from schemas.latency import LatencyStanding
from schemas.modes import IncumbentStanding
from schemas.reasons import Reason
from schemas.routes import Offset
from schemas.verifiers import VerifierStanding

TOPIC: Final = "lambda"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MOST_UNBOOKED: Final = 64
"""Events that one state lists; where more were unbooked the oldest are left out."""


class Contained(Content):
    """Name the last offset of each source topic that the state contains."""

    requests: Offset
    costs: Offset
    rewards: Offset


class Unbooked(Content):
    """Name a bill or a reward that was taken in and changed nothing."""

    topic: Literal["costs", "rewards"]
    offset: Offset
    outcome: Annotated[
        Literal["duplicate", "waiting", "refused"],
        Field(
            description="It was booked before; its request is not known yet; "
            "its dead letter says why"
        ),
    ]


class Unaffordable(Content):
    """Name a model of which little is known, that would not be worth its price at this budget even
    if it earned 1.
    """

    model: ModelName
    expected_cost_usd: NonNegative
    needed_budget_usd_per_request: Annotated[
        NonNegative,
        Field(
            description="With it 20 of the next 1,000 requests can go to the model, all else as now"
        ),
    ]


class PeriodStanding(Content):
    """Say how the budget of a period stands, and how it will end if a request goes on costing what
    it does now.
    """

    period: Literal["hour", "day", "week", "month", "dates"]
    begins: UtcTime
    ends: UtcTime
    usd: Annotated[
        NonNegative, Field(description="US dollars of the period, carried ones included")
    ]
    charged_usd: Annotated[
        float, Field(description="Bills of its requests, and what is expected of those in flight")
    ]
    left_usd: Annotated[float, Field(description="usd - charged_usd")]
    reserved_usd: Annotated[
        NonNegative, Field(description="Of these, held back for what bills in flight may bring")
    ]
    requests_left: Annotated[NonNegative, Field(description="Requests that are still expected")]
    requests_low: NonNegative
    requests_high: Annotated[
        NonNegative, Field(description="Nine of ten cases are between low and high")
    ]
    per_request_usd: Annotated[NonNegative, Field(description="What a request may cost by it")]
    forecast_usd: Annotated[float, Field(description="What will be charged at its end")]
    forecast_low_usd: float
    forecast_high_usd: float
    binds: Annotated[bool, Field(description="Whether it is the tightest")]
    pool: RouterId | None = optional("The pool that grants it; absent: the router's own budget")
    line: str | None = optional("The pool whose budget is granted, and its period: acme/month")
    lease_until: UtcTime | None = optional("When the grant ends, unless it is renewed")


class FloorStanding(Content):
    """State how the floor of rewards stands: the expected reward, and the dollars it needs."""

    expected_reward: Annotated[float, Field(description="Mean over the last requests")]
    best_reward: Annotated[float, Field(description="What the best models would have earned")]
    needed_usd_per_request: NonNegative | None = optional(
        "What it takes to meet the floor; absent: not known yet"
    )
    binds: Annotated[bool, Field(description="Whether it decides, and not a budget")]


class LambdaUpdated(Event):
    """Publish λ_t, the counters of the router, and the terms that made λ_t.

    spend_usd + unmatched_cost_usd is the sum of all bills booked; committed_usd belongs to requests
    in flight.
    """

    model_config = documented(
        TOPIC,
        valid=[
            {
                "router_id": "acme.chat",
                "seq": 1824,
                "lambda_t": 0.1,
                "budget_usd_per_request": 0.000662,
                "spend_usd": 1.19,
                "committed_usd": 0.02,
                "in_flight": 30,
                "decided": 1824,
                "settled": 1794,
                "expired": 0,
                "rewards_applied": 1724,
                "unmatched_cost_usd": 0.0,
                "config_offset": 0,
                "debt_usd": -0.0004,
                "target_usd": 0.000666,
                "window": 128,
                "applied": {"requests": 1823, "costs": 1794, "rewards": 1725},
                "unbooked": [{"topic": "costs", "offset": 1794, "outcome": "duplicate"}],
                "observed_at": "2026-11-21T09:31:00Z",
            },
            {
                "router_id": "acme.search",
                "seq": 0,
                "lambda_t": 0.0,
                "budget_usd_per_request": None,
                "spend_usd": 0.0,
                "committed_usd": 0.0,
                "in_flight": 0,
                "decided": 0,
                "settled": 0,
                "expired": 0,
                "rewards_applied": 0,
                "unmatched_cost_usd": 0.0,
                "config_offset": 17,
                "observed_at": "2026-11-21T09:31:00Z",
            },
            {
                "router_id": "acme.shop",
                "seq": 9000,
                "lambda_t": 0.02,
                "budget_usd_per_request": 0.002,
                "spend_usd": 17.9,
                "committed_usd": 0.1,
                "in_flight": 50,
                "decided": 9000,
                "settled": 8950,
                "expired": 0,
                "rewards_applied": 8900,
                "unmatched_cost_usd": 0.0,
                "config_offset": 3,
                "budgets": [
                    {
                        "period": "month",
                        "begins": "2026-11-01T00:00:00Z",
                        "ends": "2026-12-01T00:00:00Z",
                        "usd": 24.0,
                        "charged_usd": 18.0,
                        "left_usd": 6.0,
                        "reserved_usd": 0.02,
                        "requests_left": 2990.0,
                        "requests_low": 2500.0,
                        "requests_high": 3500.0,
                        "per_request_usd": 0.002,
                        "forecast_usd": 23.98,
                        "forecast_low_usd": 23.0,
                        "forecast_high_usd": 25.0,
                        "binds": True,
                    }
                ],
                "floor": {
                    "expected_reward": 0.93,
                    "best_reward": 0.94,
                    "needed_usd_per_request": 0.0015,
                    "binds": False,
                },
                "latency": {
                    "of": "answer",
                    "p95_ms": 4000.0,
                    "latency_lambda": 0.03,
                    "known": 8900,
                    "measured_ms": 1810.0,
                    "measured_over": 0.048,
                    "expected_over": 0.05,
                    "debt": 0.4,
                },
                "observed_at": "2026-11-21T09:31:00Z",
            },
        ],
        invalid={Reason.MISSING_FIELD: {"router_id": "acme.chat", "seq": 1, "lambda_t": 0.1}},
    )

    seq: Annotated[
        Count, Field(description="The last decision that this state contains; 0 before the first")
    ]
    lambda_t: NonNegative
    budget_usd_per_request: NonNegative | None = Field(
        description="US dollars; null: spend is only counted"
    )
    spend_usd: Annotated[float, Field(description="Bills of known requests, US dollars")]
    committed_usd: Annotated[
        float, Field(description="Expected cost of the requests in flight, US dollars")
    ]
    in_flight: Count
    decided: Count
    settled: Count
    expired: Annotated[Count, Field(description="Commitments whose bill never came")]
    rewards_applied: Annotated[Count, Field(description="Requests that have a reward")]
    unmatched_cost_usd: Annotated[float, Field(description="Bills of unknown requests, US dollars")]
    config_offset: Annotated[
        Count, Field(description="Offset of the declaration in force: its acknowledgement")
    ]
    observed_at: UtcTime
    debt_usd: float | None = optional("Charged so far beyond the budget, US dollars")
    target_usd: float | None = optional(
        "Mean expected cost that λ_t aims at, US dollars per request"
    )
    window: Count | None = optional("Recent contexts over which λ_t was solved")
    cost_ema_usd: float | None = optional("Smoothed cost, US dollars per request (profile paper)")
    applied: Contained | None = optional(
        "Last offsets of the sources, on the router's partition, that this state contains"
    )
    unaffordable: tuple[Unaffordable, ...] | None = optional(
        "Newcomers that the budget has no place for, and what it would take"
    )
    budgets: tuple[PeriodStanding, ...] | None = optional(
        "How budgets of a period stand; budget_usd_per_request is then what they allow"
    )
    floor: FloorStanding | None = optional("What min_reward takes")
    latency: LatencyStanding | None = optional("How a target of latency stands")
    incumbent: IncumbentStanding | None = optional("What the incumbent has answered")
    sources: tuple[SourceStanding, ...] | None = optional(
        "How declared sources of labels stand, gold first"
    )
    family: FamilyStanding | None = optional("How the router stands in its family")
    gone: tuple[ModelName, ...] | None = optional(
        "Models that their providers have no more; they are not called until declared again"
    )
    verifiers: tuple[VerifierStanding, ...] | None = optional(
        "What is known of declared verifiers, by their names"
    )
    labels: LabelsStanding | None = optional("How a budget of labels stands")
    books_age_ms: NonNegative | None = optional(
        "How long the oldest bill or label of the router's partition has waited that could have "
        "been applied; absent: none waits"
    )
    unbooked: tuple[Unbooked, ...] | None = optional(
        "Bills and rewards up to `applied`, since the record before, that changed nothing: the "
        "last 64; absent: not known"
    )
