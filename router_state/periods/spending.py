"""Declared budgets of a period, expected traffic and limits of spending."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

from msgspec import Struct

from ground.json_values import Document
from router_state.errors import InvalidConfig
from router_state.instants import FOREVER
from router_state.packing.framing import Json, converted
from router_state.periods.calendar import Per, period_at, zone_of

WhenSpent = Literal["cheapest", "refuse", "overrun"]
HOURS = 168
"""Hours of a week."""


@dataclass(frozen=True, slots=True)
class PeriodBudget:
    """A budget of dollars per period, or between two dates.

    Attributes:
        usd: dollars of one period.
        per: the period; None: the budget holds once, between `starts` and `until`.
        zone: IANA name of the time zone whose wall clock counts.
        starts: begin of the first period, seconds since the epoch; all others follow.
        until: end of a budget without a period, seconds since the epoch; both at most `FOREVER`.
        carry: most unspent dollars that one period leaves to the next.
    """

    usd: float
    per: Per | None = "month"
    zone: str = "UTC"
    starts: float | None = None
    until: float | None = None
    carry: float = 0.0

    def __post_init__(self) -> None:
        zone_of(self.zone)
        for name in ("starts", "until"):
            if (at := getattr(self, name)) is not None and at > FOREVER:
                object.__setattr__(self, name, FOREVER)
        if not 0.0 <= self.usd < math.inf:
            raise InvalidConfig(f"usd of a budget must be finite and ≥ 0, not {self.usd}")
        if not self.carry >= 0.0:
            raise InvalidConfig(f"carry of a budget must be ≥ 0, not {self.carry}")
        if (self.per is None) != (self.until is not None):
            raise InvalidConfig("a budget is per period, or from a date until another one")
        if self.until is not None and (self.starts is None or self.until <= self.starts):
            raise InvalidConfig("a budget must begin before it ends")

    @property
    def name(self) -> str:
        """Return the name that tells this budget from a router's other budgets."""
        return self.per or "dates"

    @property
    def identity(self) -> tuple[object, ...]:
        """Return the attributes that define the budget's periods; a budget of the same identity
        keeps its accounts.
        """
        return self.per, self.zone, self.starts, self.until

    def is_over(self, at: float) -> bool:
        """Tell whether the budget has ended for good."""
        return self.until is not None and at >= self.until

    def period(self, at: float) -> tuple[float, float] | None:
        """Return begin and end of the period that contains a time; None if the budget is not in
        force then.
        """
        if self.starts is not None and at < self.starts:
            return None
        if self.per is not None:
            return period_at(at, per=self.per, zone=self.zone, starts=self.starts)
        assert self.starts is not None and self.until is not None
        return None if at >= self.until else (self.starts, self.until)


@dataclass(frozen=True, slots=True)
class ExpectedTraffic:
    """Declared traffic.

    Attributes:
        per_week: requests of a usual week, a first value that observed traffic moves; None:
            learned.
        hours: by hour of the week from Monday 0:00, traffic ÷ that of the mean hour; None: learned.
    """

    per_week: float | None = None
    hours: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.per_week is not None and not 0.0 < self.per_week < math.inf:
            raise InvalidConfig(f"traffic.per_week must be finite and > 0, not {self.per_week}")
        if self.hours is None:
            return
        if len(self.hours) != HOURS or not all(0.0 <= share < math.inf for share in self.hours):
            raise InvalidConfig("traffic.hours must be 168 finite numbers ≥ 0, Monday 0:00 first")
        if not math.fsum(self.hours) > 0.0:
            raise InvalidConfig("traffic.hours must not all be 0")


@dataclass(frozen=True, slots=True)
class Spending:
    """Limits of a router's spend by the calendar, of its mean reward, and of the cost of one call.

    Attributes:
        budgets: budgets of a period, of which the tightest binds.
        when_spent: what happens when nothing is left.
        traffic: declared traffic.
        max_cost_per_request_usd: largest expected cost of a call.
        min_reward: least mean of expected rewards over the last requests.
        min_of_best: the same as a share of the best models' expected rewards.
        pool: id of the pool whose grants limit the router as well.
    """

    budgets: tuple[PeriodBudget, ...] = ()
    when_spent: WhenSpent = "cheapest"
    traffic: ExpectedTraffic = ExpectedTraffic()
    max_cost_per_request_usd: float | None = None
    min_reward: float | None = None
    min_of_best: float | None = None
    pool: str | None = None

    def __post_init__(self) -> None:
        identities = [budget.identity for budget in self.budgets]
        if len(set(identities)) < len(identities):
            raise InvalidConfig("two budgets are of the same period: keep the smaller one")
        for name in ("min_reward", "min_of_best"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise InvalidConfig(f"{name} must be in [0, 1], not {value}")
        most = self.max_cost_per_request_usd
        if most is not None and not 0.0 < most < math.inf:
            raise InvalidConfig(f"max_cost_per_request_usd must be finite and > 0, not {most}")

    @property
    def has_floor(self) -> bool:
        """Tell whether there is a floor of rewards."""
        return self.min_reward is not None or self.min_of_best is not None

    @property
    def paces(self) -> bool:
        """Tell whether any of these limits affects the price of a dollar."""
        return bool(self.budgets) or self.has_floor or self.pool is not None

    def pack(self) -> Document:
        """Return the limits as JSON's types; infinity, which JSON lacks, becomes null."""
        packed = asdict(self)
        for budget in packed["budgets"]:
            budget["carry"] = None if math.isinf(budget["carry"]) else budget["carry"]
        return packed

    @classmethod
    def unpack(cls, packed: Json) -> Spending:
        """Invert `pack`. Raises DamagedState, InvalidConfig."""
        kept = converted(packed, _Kept, "spending")
        return cls(
            tuple(budget.unpacked() for budget in kept.budgets),
            kept.when_spent,
            kept.traffic,
            kept.max_cost_per_request_usd,
            kept.min_reward,
            kept.min_of_best,
            kept.pool,
        )


class KeptBudget(Struct):
    """A budget as JSON, where null stands for infinity."""

    usd: float
    per: Per | None
    zone: str
    starts: float | None
    until: float | None
    carry: float | None

    def unpacked(self) -> PeriodBudget:
        """Return the budget. Raises InvalidConfig."""
        carry = math.inf if self.carry is None else self.carry
        return PeriodBudget(self.usd, self.per, self.zone, self.starts, self.until, carry)


class _Kept(Struct):
    budgets: list[KeptBudget]
    when_spent: WhenSpent
    traffic: ExpectedTraffic
    max_cost_per_request_usd: float | None
    min_reward: float | None
    min_of_best: float | None
    pool: str | None
