"""Find the arms that are eligible for a request."""

from __future__ import annotations

from collections.abc import Collection

from router_state.arms import Arms
from router_state.choice import Choice, Excluded
from router_state.errors import EmptyPortfolio, NoAffordableModel, NoAllowedModel


def rule_out(arms: Arms, choice: Choice) -> None:
    """Rule out retired models, and those that the request does not allow.

    Raises:
        EmptyPortfolio, NoAllowedModel, NoAffordableModel: no arm is left.
    """
    allowed, most = choice.request.allowed_models, choice.request.max_price_per_1k
    excluded = exclude(arms, allowed, most)
    if allowed is None and most is None:
        choice.excluded = excluded
    else:
        choice.limit(excluded, arms.names)


def exclude(
    arms: Arms, allowed_models: Collection[str] | None, max_price_per_1k: float | None
) -> Excluded:
    """Return for each arm the reason why the portfolio or the request excludes the arm, or None.

    Raises:
        EmptyPortfolio, NoAllowedModel, NoAffordableModel: no arm is left.
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


def under_ceiling(
    arms: Arms, excluded: Excluded, *, lambda_t: float
) -> tuple[Excluded, str | None]:
    """Rule out list prices above c_max/(1 + λ_t), where c_max is the highest in the portfolio. The
    returned reason says if no arm would be left, so that the ceiling was dropped.
    """
    ceiling = arms.highest_per_1k / (1.0 + lambda_t)
    under = [
        why or (None if arm.per_1k <= ceiling else "ceiling")
        for why, arm in zip(excluded, arms, strict=True)
    ]
    return (under, None) if None in under else (excluded, "ceiling_relaxed")
