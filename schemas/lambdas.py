"""Topic `lambda`: the dual variable of one router and the money behind it; the last record counts.

Key: router_id, raw UTF-8. Version 1. Compatible: new fields. Not compatible: a missing field,
another unit.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from schemas.event import Content, Event, documented, optional
from schemas.fields import Count, ModelName, NonNegative, UtcTime
from schemas.reasons import Reason
from schemas.routes import Offset

TOPIC: Final = "lambda"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MOST_UNBOOKED: Final = 64
"""Events that one state lists; where more were unbooked the oldest are left out."""


class Contained(Content):
    """Say which events the state contains: a writer's event is in from its offset on."""

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
    mean_expected_cost_usd: float | None = optional(
        "Mean expected cost of the window's winners, US dollars per request"
    )
    window: Count | None = optional("Recent contexts over which λ_t was solved")
    cost_ema_usd: float | None = optional("Smoothed cost, US dollars per request (profile paper)")
    applied: Contained | None = optional(
        "Last offsets of the sources, on the router's partition, that this state contains"
    )
    unaffordable: tuple[Unaffordable, ...] | None = optional(
        "Newcomers that the budget has no place for, and what it would take"
    )
    unbooked: tuple[Unbooked, ...] | None = optional(
        "Bills and rewards up to `applied`, since the record before, that changed nothing: the "
        "last 64; absent: not known"
    )
