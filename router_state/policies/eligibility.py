"""Which arms a request may be given to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from router_state.arms import Arms
from router_state.costs.cost_model import KNOWN_AFTER, CostModel
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
    if max(expected) <= usd:
        return excluded
    found, within = [], False
    for why, cost, model in zip(excluded, expected, arms.costs, strict=True):
        if why is None:
            if cost <= usd:
                within = True
            elif model.bills > KNOWN_AFTER:
                why = "out_of_reach"
        found.append(why)
    # Where every arm is out of reach none is ruled out: a request must be answered.
    return found if within else excluded


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
    waiting = {
        k
        for k, model in enumerate(models)
        if model.bills <= FEW
        and excluded[k] is None
        and PESSIMISM * (model.awaited + 1) * expected[k]
        > (usd if model.awaited else FIRST_CALL * usd)
    }
    if not waiting:
        return excluded
    eligible = [k for k, why in enumerate(excluded) if why is None]
    likely = PESSIMISM * min([expected[k] for k in eligible])
    for k in eligible:
        if k not in waiting and expected[k] <= likely:
            break
    else:
        waiting = _take_turns(models, eligible, expected, likely=likely, usd=usd)
    return ["cost_unknown" if k in waiting else why for k, why in enumerate(excluded)]


def _take_turns(
    models: Sequence[CostModel],
    eligible: Sequence[int],
    expected: Sequence[float],
    *,
    likely: float,
    usd: float,
) -> set[int]:
    """Return which arms may not be called where all that cost no more than `likely` have to wait:
    all but a dear one or one of them, see `within_stake`."""
    dear = [k for k in eligible if expected[k] > likely and models[k].bills <= FEW]
    stake = sum((PESSIMISM * models[k].awaited * expected[k] for k in dear), 0.0)
    most = usd if stake > 0.0 else FIRST_CALL * usd
    waiting = {k for k in eligible if expected[k] <= likely or models[k].bills <= FEW}
    waiting.difference_update(k for k in dear if stake + PESSIMISM * expected[k] <= most)
    if len(waiting) == len(eligible):
        cheap = [k for k in eligible if expected[k] <= likely]
        waiting.remove(min(cheap, key=lambda k: (models[k].awaited + 1) * expected[k]))
    return waiting


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
