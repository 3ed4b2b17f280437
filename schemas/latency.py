"""Latency: how long calls may take, in a router's declaration and in its published state."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from schemas.costs import MAX_MILLISECONDS
from schemas.event import Content, optional
from schemas.fields import Count, NonNegative, form, one_form, refuse
from schemas.reasons import Reason

Timed = Literal["answer", "first_token"]
Limit = Annotated[float, Field(gt=0, le=MAX_MILLISECONDS)]
PerSecond = Annotated[float, Field(gt=0, le=1000)]


class LatencyTarget(Content):
    """Say how long calls may take: 19 in 20 up to `p95_ms`, or `mean_ms` on average."""

    p95_ms: Limit | None = optional("At most one call in twenty takes longer")
    mean_ms: Limit | None = optional("So long does a call take on average at most")
    of: Timed = Field(
        default="answer", description="What is timed: the whole answer, or up to its first token"
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.p95_ms is None) == (self.mean_ms is None):
            raise refuse(Reason.INVALID_FIELD, "needs one of p95_ms and mean_ms")
        return self


class FirstTokenPriced(Content):
    """Price the time up to the first token."""

    first_token: PerSecond


def _of_what(value: object) -> str:
    return "token" if isinstance(value, dict | FirstTokenPriced) else "answer"


SecondPriced = Annotated[
    Annotated[PerSecond, form("answer")] | Annotated[FirstTokenPriced, form("token")],
    one_form(_of_what),
]
"""US dollars that a second is worth: of the time of a whole answer, or of the time up to its first
token."""


class LatencyStanding(Content):
    """Say how a target of latency stands."""

    of: Timed
    p95_ms: Limit | None = optional("The target, if it is this one")
    mean_ms: Limit | None = optional("The target, if it is this one")
    usd_per_second: PerSecond | None = optional("What a second is worth, if there is no target")
    latency_lambda: Annotated[
        NonNegative,
        Field(description="Reward that a wait as long as the target, or a second, must earn"),
    ]
    known: Annotated[
        Count,
        Field(description="Answers since the declaration that told their time; below 20 no effect"),
    ]
    measured_ms: NonNegative | None = optional("Mean time of the last 1,000 of them")
    measured_over: Annotated[float, Field(ge=0, le=1)] | None = optional(
        "Share of them that took longer than p95_ms"
    )
    expected_ms: NonNegative | None = optional("Mean time that is expected of the window's winners")
    expected_over: Annotated[float, Field(ge=0, le=1)] | None = optional(
        "Share of them that is expected to take longer than p95_ms"
    )
    debt: float | None = optional(
        "What calls have taken beyond the target: slow calls beyond one in twenty, or seconds"
    )
