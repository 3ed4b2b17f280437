"""Which arms a request may be given to."""

from __future__ import annotations

import math
from collections.abc import Collection

from router_state.arms import Arms
from router_state.costs.predictive import Z90
from router_state.errors import EmptyPortfolio, NoAffordableModel, NoAllowedModel

CREDIT = 50.0
"""Budgets that one call may be expected to cost where another may cost less."""
AT_RISK = 25.0
"""Budgets that calls whose bills are awaited may cost beyond their expectations, in nine of ten
cases."""
TOLERATED = 0.25
"""Share of an expectation by which the mean may be above it without being a risk: the debt corrects
that. In a burst thousands of calls of known models await their bills."""
FIRST_CALL = 4.0
"""Multiple of `AT_RISK` that a model's only call in flight may bring the risk to: without a first
bill nothing would ever be known."""
MOST_LEVEL = 2.0
"""Largest variance of a level's logarithm that is assumed."""
MOST_BEYOND = math.expm1(Z90 * math.sqrt(MOST_LEVEL))
"""Largest multiple of its expectation by which a mean may be above it."""
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
    """Rule out arms that may cost too much: by what one call is expected to cost, and by what calls
    in flight may cost beyond their expectations.

    The risks of models are independent, so their squares add up. An arm that risks too much is
    called all the same where all others surely cost more than it may: a request must be answered.

    Args:
        costs: expected dollars of the request at each arm.
    """
    credit, noise, total = CREDIT * budget_usd, arms.bills.noise, 0.0
    # Mostly little is in flight: then no doubt about a level can make it too much.
    most = AT_RISK * budget_usd / (MOST_BEYOND * len(costs))
    for model, cost in zip(arms.costs, costs, strict=True):
        if (model.awaited + 1) * cost > most:
            break
    else:
        return excluded
    risks: list[float] = []
    beyond: list[float] = []
    for model, cost in zip(arms.costs, costs, strict=True):
        regression = model.regression
        level = 0.0 if model.free else noise * regression.inverse.item(-1) / regression.decay
        share = math.expm1(Z90 * math.sqrt(level if level < MOST_LEVEL else MOST_LEVEL))
        more = cost * (share - TOLERATED) if share > TOLERATED else 0.0
        beyond.append(more)
        risks.append(model.awaited * more)
        total += risks[-1] ** 2
    if total <= 0.0 and max(costs) <= credit:
        return excluded
    limit = AT_RISK * budget_usd
    # Where each of K arms risks at most this share of the limit, all together stay within it.
    share, found = 1.0 / math.sqrt(len(costs)), list(excluded)
    for k, why in enumerate(excluded):
        if why is not None:
            continue
        most = limit if arms.costs[k].awaited else FIRST_CALL * limit
        with_it = risks[k] + beyond[k]
        if costs[k] > credit:
            found[k] = "out_of_reach"
        elif (
            with_it > most * share
            and math.hypot(math.sqrt(max(total - risks[k] ** 2, 0.0)), with_it) > most
        ):
            found[k] = "cost_unknown"
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
