"""Compute the expected cost of a call of each model, and rule out models that may cost too much."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from router_state.errors import NonFiniteInput
from router_state.kernel.cost_model import CostModel
from router_state.kernel.linear import room
from router_state.kernel.words import Floats, Index, Real, cfunc

if TYPE_CHECKING:
    from collections.abc import Sequence


@cfunc
def require_each(models: Sequence[CostModel], numbers: Sequence[float]) -> Index:
    """Return how many models there are. Raises ValueError where numbers are of more or fewer."""
    if len(numbers) != len(models):
        raise ValueError(f"{len(numbers)} numbers are not of {len(models)} models")
    return len(models)


def mean_costs(models: Sequence[CostModel]) -> list[float]:
    """Return the dollars that a call of each model costs on average."""
    one: CostModel
    found: list[float] = []
    for k in range(len(models)):
        one = models[k]
        found.append(one.ratio * one.list_price)
    return found


def expected_costs(
    models: Sequence[CostModel], exponents: Sequence[float], tokens: Real
) -> list[float]:
    """Return the expected dollars of a call of each model, see `CostModel.expected`.

    Raises:
        NonFiniteInput: a cost is not finite.
    """
    one: CostModel
    found: list[float] = []
    total: Real = 0.0
    for k in range(require_each(models, exponents)):
        one = models[k]
        cost: Real = one.expect(exponents[k], tokens)
        total += cost
        found.append(cost)
    if not isfinite(total):
        raise NonFiniteInput("what an arm has learned of its costs is not finite")
    return found


@cfunc
def in_flight(models: Sequence[CostModel], costs: Sequence[float], beyond: Floats) -> Real:
    """Write what a call of each model may cost beyond its expectation, then how many are in flight;
    return the square of what these may cost beyond theirs."""
    one: CostModel
    calls: Index = 0
    total: Real = 0.0
    for k in range(len(models)):
        one = models[k]
        beyond[k] = one.more(costs[k])
        calls += one.awaited
        total += (one.awaited * beyond[k]) * (one.awaited * beyond[k])
    beyond[len(models)] = calls
    return total


def within_risk(
    models: Sequence[CostModel],
    excluded: list[str | None],
    costs: Sequence[float],
    most: Real,
    each: Real,
) -> list[str | None]:
    """Rule out arms that in one of ten cases cost too much: a call more than `most` dollars, or
    calls in flight and one more so many beyond their expectations, or so many for `each` of them.

    The risks of models are independent, so their squares add up. An arm that risks too much stays
    eligible if all others surely cost more, as a request must be answered.

    Args:
        excluded: why arms may not be called before that.
        costs: expected dollars of the request at each arm.
    """
    K: Index = require_each(models, costs)
    if len(excluded) != K:
        raise ValueError(f"{len(excluded)} reasons are not of {K} models")
    one: CostModel
    beyond: Floats = room(K + 1)
    total: Real = in_flight(models, costs, beyond)
    limit: Real = max(most, each * beyond[K])
    found: list[str | None] = excluded
    surely: Real = float("inf")
    likely: Real = surely
    for k in range(K):
        if excluded[k] is not None:
            continue
        one = models[k]
        cost: Real = costs[k]
        # Of each arm its next call is at risk, too.
        more: Real = (2 * one.awaited + 1) * (beyond[k] * beyond[k])
        out_of_reach = one.dear(cost) > most
        if out_of_reach or total + more > limit * limit:
            if found is excluded:
                found = list(excluded)
            found[k] = "out_of_reach" if out_of_reach else "cost_unknown"
            likely = min(likely, cost + beyond[k])
        else:
            surely = min(surely, cost)
    if found is excluded:
        return excluded
    for k in range(K):
        cost = costs[k]
        if excluded[k] is None and cost <= likely and cost + beyond[k] <= surely:
            found[k] = None
    return found
