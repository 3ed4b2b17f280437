"""Parts of a router's declaration: budgets of a period, the traffic that is known beforehand, and
the floor of rewards."""

import re
from datetime import datetime
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from schemas.event import CONTENT, Content, optional
from schemas.fields import UnitInterval, UtcTime, form, one_form, refuse
from schemas.reasons import Reason

HOURS = 168
"""Hours of a week."""
PERIODS = ("hour", "day", "week", "month")
"""Periods that a budget may have."""
MAX_BUDGETS = 8
"""Most budgets of one router."""
NO_ZONES = re.compile(r"localtime|posixrules|Factory|right/.*")
"""Names in the zone database that are not names of a place's zone: the machine's own zone, no zone,
zones with leap seconds."""


def _known_zone(name: str) -> str:
    try:
        if NO_ZONES.fullmatch(name):
            raise KeyError(name)
        ZoneInfo(name)
    # Of a name that is no file's, or a folder's, or no path.
    except (KeyError, ValueError, OSError):
        raise refuse(
            Reason.INVALID_FIELD, "is not an IANA time zone, for example Europe/Berlin"
        ) from None
    return name


Zone = Annotated[
    str,
    Field(max_length=64, description="IANA name: by whose clock days, weeks and months begin"),
    AfterValidator(_known_zone),
]
"""A time zone."""


def _some_traffic(hours: tuple[float, ...]) -> tuple[float, ...]:
    if not sum(hours) > 0.0:
        raise refuse(Reason.INVALID_FIELD, "must not all be 0")
    return hours


def _how_carried(value: object) -> str:
    return "usd" if isinstance(value, int | float) else "word"


Carry = Annotated[
    Annotated[Literal["none", "all"], form("word")]
    | Annotated[float, Field(ge=0, le=1e9), form("usd")],
    one_form(_how_carried),
]
"""Unspent money that the next period gets."""


class PeriodBudget(Content):
    """Limit what a router spends in a period, paced over the traffic that is still expected."""

    # As JSON calls them; `from` is a word of Python's.
    model_config = ConfigDict(**CONTENT, serialize_by_alias=True, validate_by_name=True)

    usd: Annotated[float, Field(ge=0, le=1e9, description="US dollars per period")]
    per: Literal["hour", "day", "week", "month"] | None = optional(
        "The period; absent: one from `from` until `until`"
    )
    timezone: Zone = "UTC"
    starts: UtcTime | None = optional(
        "When the first period begins; all others follow. Absent: at midnight, on Mondays, on the "
        "first of the month"
    )
    begins: Annotated[UtcTime | None, Field(alias="from")] = optional(
        "When a budget without `per` begins"
    )
    until: UtcTime | None = optional("When it ends; nothing is left afterwards")
    carry: Carry = Field(
        default="none",
        description="Unspent money that the next period gets: none, all, or at most so many US "
        "dollars",
    )

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        dates: tuple[datetime | None, ...] = (self.begins, self.until)
        if self.per is not None and dates != (None, None):
            raise refuse(Reason.INVALID_FIELD, "has per and dates: give one of them")
        if self.per is None and (None in dates or self.starts is not None):
            raise refuse(Reason.INVALID_FIELD, "needs per, or from and until")
        if self.begins is not None and self.until is not None and self.until <= self.begins:
            raise refuse(Reason.INVALID_FIELD, "must end after it begins")
        return self


def _how_many(value: object) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


Budgets = Annotated[
    Annotated[PeriodBudget, form("one")]
    | Annotated[
        tuple[PeriodBudget, ...], Field(min_length=1, max_length=MAX_BUDGETS), form("several")
    ],
    one_form(_how_many),
]
"""One budget, or several: the tightest binds."""
WhenSpent = Literal["cheapest", "refuse", "overrun"]


class TrafficExpected(Content):
    """Say what traffic is expected; absent parts are learned."""

    per_week: Annotated[float, Field(gt=0, le=1e12)] | None = optional(
        "Requests of a usual week; the traffic that comes moves it"
    )
    hours: (
        Annotated[
            tuple[Annotated[float, Field(ge=0, le=1e9)], ...],
            Field(min_length=HOURS, max_length=HOURS),
            AfterValidator(_some_traffic),
        ]
        | None
    ) = optional(
        "What each hour of the week gets compared with the others, by the first budget's clock, "
        "from Monday 0:00 on: 168 numbers"
    )


class OfBest(Content):
    """Set the floor of rewards by what the best model for each prompt would earn."""

    of_best: UnitInterval


def _which_floor(value: object) -> str:
    return "share" if isinstance(value, dict | OfBest) else "reward"


Floor = Annotated[
    Annotated[UnitInterval, form("reward")] | Annotated[OfBest, form("share")],
    one_form(_which_floor),
]
"""Least mean reward: a number, or a share of the best models' mean reward."""
