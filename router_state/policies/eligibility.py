"""Find the arms that a request may be given to."""

from __future__ import annotations

import math
from collections.abc import Collection

from router_state.arms import Arms
from router_state.errors import EmptyPortfolio, NoAffordableModel, NoAllowedModel
from router_state.kernel import risks
from router_state.pacing.debt import HORIZON

CREDIT = HORIZON / 2.0
"""Budgets that one call may be expected to cost where another may cost less: half of what a horizon
pays back (drawn worlds: with 100 most overspend more, by a hundredth of a budget)."""
TOLERATED = 0.25
"""Budgets for each call in flight that the bills may be beyond their expectations: the debt
corrects that. In a burst thousands of calls of known models await their bills."""
Excluded = list[str | None]
"""Per arm why it may not be called, or None."""


def exclude(
    arms: Arms, allowed_models: Collection[str] | None, max_price_per_1k: float | None
) -> Excluded:
    """Return what the portfolio and the request rule out.

    Raises:
        EmptyPortfolio, NoAllowedModel, NoAffordableModel: nothing is left.
    """
    excluded: Excluded = [None if arm.retired_at is None else "retired" for arm in arms]
    if None not in excluded:
        raise EmptyPortfolio("the router has no model that takes traffic")
    if allowed_models is not None:
        excluded = [
            why or (None if m in allowed_models else "not_allowed")
            for why, m in zip(excluded, arms.names, strict=True)
        ]
        if None not in excluded:
            raise NoAllowedModel("none of allowed_models is in the portfolio")
    if max_price_per_1k is not None:
        excluded = [
            why or (None if arm.per_1k <= max_price_per_1k else "over_max_price")
            for why, arm in zip(excluded, arms, strict=True)
        ]
        if None not in excluded:
            raise NoAffordableModel(
                f"no eligible model has a list price up to ${max_price_per_1k} per 1k tokens"
            )
    return excluded


def within_risk(arms: Arms, excluded: Excluded, costs: list[float], budget_usd: float) -> Excluded:
    """Rule out arms that may cost too much: a call more than `CREDIT` budgets, or calls in flight
    more than `HORIZON` budgets beyond their expectations, in nine of ten cases.

    The risks of models are independent, so their squares add up. An arm that risks too much is
    called all the same where all others surely cost more than it may: a request must be answered.

    Args:
        costs: expected dollars of the request at each arm.
    """
    credit = CREDIT * budget_usd
    beyond, in_flight, total = risks(arms.costs, costs)
    found, limit = list(excluded), budget_usd * max(HORIZON, TOLERATED * in_flight)
    for k, (model, cost) in enumerate(zip(arms.costs, costs, strict=True)):
        # Of each arm its next call is at risk, too.
        more = (2 * model.awaited + 1) * beyond[k] ** 2
        if excluded[k] is None and (cost > credit or total + more > limit * limit):
            found[k] = "out_of_reach" if cost > credit else "cost_unknown"
    return found if found == excluded else _answered(excluded, found, costs, beyond)


def _answered(
    excluded: Excluded, found: Excluded, costs: list[float], beyond: list[float]
) -> Excluded:
    """Let arms back in that may be cheaper than all that are left.

    Args:
        excluded: before risks were looked at; found: with them.
        beyond: dollars by which each arm may cost more than is expected.
    """
    waiting = [k for k, why in enumerate(found) if why is not None and excluded[k] is None]
    surely = min(
        [cost for cost, why in zip(costs, found, strict=True) if why is None] or [math.inf]
    )
    likely = min([costs[k] + beyond[k] for k in waiting])
    for k in waiting:
        if costs[k] <= likely and costs[k] + beyond[k] <= surely:
            found[k] = None
    return found


def under_ceiling(
    arms: Arms, excluded: Excluded, *, lambda_t: float
) -> tuple[Excluded, str | None]:
    """Rule out list prices above c_max/(1 + λ_t), c_max over the portfolio; the reason says so
    where that had to be given up."""
    ceiling = arms.highest_per_1k / (1.0 + lambda_t)
    under = [
        why or (None if arm.per_1k <= ceiling else "ceiling")
        for why, arm in zip(excluded, arms, strict=True)
    ]
    return (under, None) if None in under else (excluded, "ceiling_relaxed")
