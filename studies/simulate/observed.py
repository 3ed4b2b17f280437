"""Collect observations of a router's models from its history: rewards, bills, and outcomes in the
metadata.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from router_state.config import Price
from router_state.long_inputs.declared_prices import price_of
from studies.history.happened import Declared
from studies.simulate.cases import Case
from studies.warm_start.observations import Observations


class NothingObserved(Exception):
    """The history has no decided request with a reward or a bill."""

    reason = "nothing_observed"
    retriable = False


def observe(cases: Iterable[Case | Declared]) -> Observations:
    """Collect rewards and bills by model. Bills are as they would be at the last list price.

    If the router was declared anew with contexts of another shape, only cases with contexts of the
    last shape count.

    Raises:
        NothingObserved: there are none.
    """
    prices: dict[str, Price] = {}
    kept: list[tuple[Case, dict[str, float]]] = []
    for case in cases:
        if isinstance(case, Declared):
            models = {} if case.router is None else case.router.models
            prices |= {name: price_of(model) for name, model in models.items()}
        elif case.outcomes or case.reward is not None or case.cost_usd is not None:
            kept.append((case, {name: price.per_1k for name, price in prices.items()}))
    if not kept:
        raise NothingObserved("no decided request of the history has a reward or a bill")
    shape = kept[-1][0].x.shape
    # Contexts of another length come from another projection, so their numbers mean something else.
    kept = [(case, then) for case, then in kept if case.x.shape == shape]
    return _table(kept, {name: price.per_1k for name, price in prices.items()})


def _table(kept: list[tuple[Case, dict[str, float]]], latest: dict[str, float]) -> Observations:
    names = tuple(sorted({name for case, _ in kept for name in (case.model, *case.outcomes)}))
    column = {name: k for k, name in enumerate(names)}
    rewards, costs = (
        np.full((len(kept), len(names)), np.nan),
        np.full((len(kept), len(names)), np.nan),
    )
    for row, (case, prices) in enumerate(kept):
        for name, (reward, cost_usd) in case.outcomes.items():
            rewards[row, column[name]], costs[row, column[name]] = (
                reward,
                cost_usd * _since(name, prices, latest),
            )
        k = column[case.model]
        if case.reward is not None:
            rewards[row, k] = case.reward
        if case.cost_usd is not None:
            costs[row, k] = case.cost_usd * _since(case.model, prices, latest)
    contexts = np.stack([case.x for case, _ in kept])
    return Observations(names, contexts, rewards, costs, [case.request_id for case, _ in kept])


def _since(name: str, then: dict[str, float], latest: dict[str, float]) -> float:
    """Return the factor by which a model's list price has changed since; 1 where either price is
    zero.
    """
    before, after = then.get(name, 0.0), latest.get(name, 0.0)
    # Bills are proportional to list prices, so an old bill is converted to today's price.
    return after / before if before > 0.0 and after > 0.0 else 1.0
