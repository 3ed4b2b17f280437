"""Convert budgets of a period, of routers and of pools, between declarations and the core."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from router_state.instants import utc
from router_state.periods.calendar import Per
from router_state.periods.spending import ExpectedTraffic, PeriodBudget, Spending, WhenSpent


class BudgetOnWire(Protocol):
    """A budget of a period as it is declared."""

    @property
    def usd(self) -> float: ...
    @property
    def per(self) -> Per | None: ...
    @property
    def timezone(self) -> str: ...
    @property
    def starts(self) -> datetime | None: ...
    @property
    def begins(self) -> datetime | None: ...
    @property
    def until(self) -> datetime | None: ...
    @property
    def carry(self) -> float | Literal["none", "all"]: ...


BudgetsOnWire = BudgetOnWire | Sequence[BudgetOnWire] | None


class TrafficOnWire(Protocol):
    """Expected traffic as it is declared."""

    @property
    def per_week(self) -> float | None: ...
    @property
    def hours(self) -> tuple[float, ...] | None: ...


class OfBestOnWire(Protocol):
    """A floor as a share of what the best models would earn."""

    @property
    def of_best(self) -> float: ...


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def budget(self) -> BudgetsOnWire: ...
    @property
    def when_spent(self) -> WhenSpent | None: ...
    @property
    def traffic(self) -> TrafficOnWire | None: ...
    @property
    def max_cost_per_request_usd(self) -> float | None: ...
    @property
    def min_reward(self) -> float | OfBestOnWire | None: ...
    @property
    def pool(self) -> str | None: ...


def spending_of(declared: OnWire) -> Spending | None:
    """Return the declared budgets of periods, floors and limits of single calls; None if none is
    declared.

    Raises:
        InvalidConfig: two budgets have the same period, or this machine does not know a time zone.
    """
    budgets = budgets_of(declared.budget)
    floor, most = declared.min_reward, declared.max_cost_per_request_usd
    if not budgets and floor is None and most is None and declared.pool is None:
        return None
    traffic = declared.traffic
    return Spending(
        budgets=budgets,
        when_spent=declared.when_spent or "cheapest",
        traffic=ExpectedTraffic()
        if traffic is None
        else ExpectedTraffic(traffic.per_week, traffic.hours),
        max_cost_per_request_usd=most,
        min_reward=floor if isinstance(floor, int | float) else None,
        min_of_best=None if floor is None or isinstance(floor, int | float) else floor.of_best,
        pool=declared.pool,
    )


def budgets_of(declared: BudgetsOnWire) -> tuple[PeriodBudget, ...]:
    """Return budgets of periods: none, one or several.

    Raises:
        InvalidConfig: this machine does not know a time zone.
    """
    given = () if declared is None else declared if isinstance(declared, Sequence) else (declared,)
    return tuple(map(_budget, given))


def _budget(declared: BudgetOnWire) -> PeriodBudget:
    starts = declared.starts or declared.begins
    match declared.carry:
        case "none":
            carry = 0.0
        case "all":
            carry = math.inf
        case usd:
            carry = usd
    return PeriodBudget(
        usd=declared.usd,
        per=declared.per,
        zone=declared.timezone,
        starts=None if starts is None else starts.timestamp(),
        until=None if declared.until is None else declared.until.timestamp(),
        carry=carry,
    )


def document_of(spending: Spending) -> dict[str, object]:
    """Return the fields of a declaration for these budgets and limits."""
    document: dict[str, object] = {}
    if spending.budgets:
        document["budget"] = [_budget_document(budget) for budget in spending.budgets]
    if spending.pool is not None:
        document["pool"] = spending.pool
    if spending.when_spent != "cheapest":
        document["when_spent"] = spending.when_spent
    traffic: dict[str, object] = {}
    if spending.traffic.per_week is not None:
        traffic["per_week"] = spending.traffic.per_week
    if spending.traffic.hours is not None:
        traffic["hours"] = list(spending.traffic.hours)
    if traffic:
        document["traffic"] = traffic
    if spending.max_cost_per_request_usd is not None:
        document["max_cost_per_request_usd"] = spending.max_cost_per_request_usd
    if spending.min_reward is not None:
        document["min_reward"] = spending.min_reward
    if spending.min_of_best is not None:
        document["min_reward"] = {"of_best": spending.min_of_best}
    return document


def _budget_document(budget: PeriodBudget) -> dict[str, object]:
    found: dict[str, object] = {"usd": budget.usd}
    if budget.per is not None:
        found["per"] = budget.per
    if budget.zone != "UTC":
        found["timezone"] = budget.zone
    if budget.starts is not None:
        found["from" if budget.per is None else "starts"] = _time(budget.starts)
    if budget.until is not None:
        found["until"] = _time(budget.until)
    if budget.carry > 0.0:
        found["carry"] = "all" if math.isinf(budget.carry) else budget.carry
    return found


def _time(seconds: float) -> str:
    return utc(seconds).isoformat().replace("+00:00", "Z")
