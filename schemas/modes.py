"""Modes of a router beside its incumbent, in its declaration and in its published state."""

from __future__ import annotations

from itertools import pairwise
from math import isclose
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from schemas.event import Content
from schemas.fields import Count, ModelName, NonNegative, UnitInterval, form, one_form, refuse
from schemas.reasons import Reason

MOST_MIXED = 1000
"""Most models of a mix: as many as a router may have."""
Mode = Literal["observe", "route"]
Unit = Literal["session", "request"]
MOST_STEPS = 20
"""Most shares of a ramp."""
Holdout = Annotated[float, Field(ge=0, lt=1)]


def _whole(mix: dict[str, float]) -> dict[str, float]:
    if not isclose(sum(mix.values()), 1.0, abs_tol=1e-6):
        raise refuse(Reason.INVALID_FIELD, "the shares of a mix must add up to 1")
    return mix


def _rising(shares: tuple[float, ...]) -> tuple[float, ...]:
    if any(after <= before for before, after in pairwise(shares)):
        raise refuse(Reason.INVALID_FIELD, "the shares of a ramp must rise")
    return shares


Ramp = Annotated[
    tuple[Annotated[float, Field(gt=0, le=1)], ...],
    Field(min_length=1, max_length=MOST_STEPS),
    AfterValidator(_rising),
]
"""Shares that follow each other, the least first."""


def _how_many(value: object) -> str:
    return "mix" if isinstance(value, dict) else "one"


Incumbent = Annotated[
    Annotated[ModelName, form("one")]
    | Annotated[
        dict[ModelName, Annotated[float, Field(gt=0, le=1)]],
        Field(min_length=1, max_length=MOST_MIXED),
        AfterValidator(_whole),
        form("mix"),
    ],
    one_form(_how_many),
]
"""One model, or several with their shares, which add up to 1."""


class IncumbentStanding(Content):
    """Say what the incumbent has answered since it is declared."""

    routed_share: Annotated[
        UnitInterval, Field(description="Probability with which the router answers a request")
    ]
    answered: Count
    billed: Annotated[Count, Field(description="Those of them that have a bill")]
    spend_usd: Annotated[
        NonNegative, Field(description="Their bills, US dollars; part of the router's spend_usd")
    ]
