"""Which arms a request may be given to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from router_state.arms import Arms
from router_state.cost_model import KNOWN_AFTER, CostModel
from router_state.errors import EmptyPortfolio, NoAffordableModel, NoAllowedModel

FEW = 3.0
"""Bills, the first guess among them, up to which a model's cost is not known."""
PESSIMISM = 2.5
"""Times what is expected that such a call may well cost: a deviation of the first guess."""
FIRST_CALL = 4.0
"""Times what is at stake that the first call may cost."""
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


def within_reach(
    arms: Arms, excluded: Excluded, expected: Sequence[float], *, usd: float
) -> Excluded:
    """Rule out arms of which bills say that the request will cost more dollars than this, if
    another is expected not to."""
    # Where every arm is out of reach none is ruled out: a request must be answered.
    if max(expected) <= usd or all(
        why is not None or cost > usd for why, cost in zip(excluded, expected, strict=True)
    ):
        return excluded
    return [
        why or ("out_of_reach" if cost > usd and model.bills > KNOWN_AFTER else None)
        for why, cost, model in zip(excluded, expected, arms.costs, strict=True)
    ]


def within_stake(
    arms: Arms, excluded: Excluded, expected: Sequence[float], *, usd: float
) -> Excluded:
    """Rule out arms of which few bills have come, and so many calls await theirs that they might
    cost more dollars than this.

    The first one may cost `FIRST_CALL` times as much: without it nothing would ever be known. Where
    all that may be as cheap as the cheapest have to wait, dearer ones of which no more is known are
    called instead, for as much together; then again the cheap ones, by turns: who goes up the price
    list, from one unknown cost to the next, owes hundreds of budgets before the first bill comes.
    """
    models = arms.costs
    for model in models:
        if model.bills <= FEW:
            break
    else:
        return excluded
    waiting = [
        model.bills <= FEW
        and PESSIMISM * (model.awaited + 1) * cost > (usd if model.awaited else FIRST_CALL * usd)
        for model, cost in zip(models, expected, strict=True)
    ]
    if True not in waiting:
        return excluded
    least = min([cost for why, cost in zip(excluded, expected, strict=True) if why is None])
    likely = PESSIMISM * least
    for why, cost, wait in zip(excluded, expected, waiting, strict=True):
        if why is None and cost <= likely and not wait:
            break
    else:
        _take_turns(models, excluded, expected, waiting, likely=likely, usd=usd)
    return [
        why or ("cost_unknown" if wait else None)
        for why, wait in zip(excluded, waiting, strict=True)
    ]


def _take_turns(
    models: Sequence[CostModel],
    excluded: Excluded,
    expected: Sequence[float],
    waiting: list[bool],
    *,
    likely: float,
    usd: float,
) -> None:
    """Where all that cost no more than `likely` have to wait, let a dear one or one of them be
    called, see `within_stake`: `waiting` says which ones may not."""
    eligible = [k for k, why in enumerate(excluded) if why is None]
    dear = [k for k in eligible if expected[k] > likely and models[k].bills <= FEW]
    stake = sum((PESSIMISM * models[k].awaited * expected[k] for k in dear), 0.0)
    most = usd if stake > 0.0 else FIRST_CALL * usd
    for k in dear:
        waiting[k] = stake + PESSIMISM * expected[k] > most
    if all(waiting[k] for k in eligible):
        cheap = [k for k in eligible if expected[k] <= likely]
        waiting[min(cheap, key=lambda k: (models[k].awaited + 1) * expected[k])] = False


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
