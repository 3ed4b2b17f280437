"""Money: what a decision commits, what a bill corrects, and what both teach the pacer and the cost model."""

from __future__ import annotations

import math

from router_state import cost_model
from router_state.alert import Alert
from router_state.choosing import UNLIMITED, Spare
from router_state.config import Price, Vector
from router_state.drift import Shift
from router_state.dual import CREDIT, EVERY, HORIZON, UNREACHABLE, DualPacer
from router_state.errors import CostOutOfRange, NonFiniteInput
from router_state.record import RequestRecord
from router_state.state import RouterState

MAX_COST_USD = 1000.0
MOST_PER_DOLLAR = 1e300
"""Reward per dollar; times the dearest call it is still finite, whatever the budget is."""
UNREACHABLE_FROM, UNREACHABLE_AFTER = 1.05, 50


def cost_piece(model: str) -> str:
    """Return the name of the array piece that holds a model's cost model."""
    return f"\x1fcost:{model}"


def checked_cost(cost_usd: float) -> float:
    """Return a cost as a float.

    Raises:
        NonFiniteInput, CostOutOfRange: not a cost.
    """
    cost_usd = float(cost_usd)
    if not 0.0 <= cost_usd <= MAX_COST_USD:
        if not math.isfinite(cost_usd):
            raise NonFiniteInput("a cost is not finite")
        raise CostOutOfRange(f"a cost must be between 0 and {MAX_COST_USD:g} dollars")
    return cost_usd


def commit(state: RouterState, request_id: str, record: RequestRecord) -> None:
    """Put a decision's expected cost on the books."""
    expected = record.expected_cost_usd
    state.open_commitments[request_id] = record.decided_at
    state.committed_usd += expected
    pacer = state.pacer
    if pacer is None and not state.buckets:
        return
    if pacer is not None and state.config.knobs.commit_and_settle:
        budget = state.config.budget_usd_per_request
        assert budget is not None
        if isinstance(pacer, DualPacer):
            pacer.charge(expected - budget, budget)
        else:
            pacer.observe(expected, budget)
    for bucket in state.buckets:
        bucket.left_usd -= expected


def close(state: RouterState, request_id: str, record: RequestRecord) -> None:
    """Take a commitment off the books, if it is still there."""
    if state.open_commitments.pop(request_id, None) is not None:
        state.committed_usd -= record.expected_cost_usd
        if not state.open_commitments:
            state.committed_usd = 0.0


def charge(state: RouterState, record: RequestRecord, cost_usd: float) -> None:
    """Book a bill, or what a later revision of it says, in place of what was charged for the request so far."""
    first = record.bill is None
    charged = 0.0 if record.bill is None else record.bill.cost_usd
    state.spend_usd += cost_usd - charged
    if first:
        charged = record.expected_cost_usd
    for bucket in state.buckets:
        bucket.left_usd -= cost_usd - charged
    pacer, budget = state.pacer, state.config.budget_usd_per_request
    if pacer is None or budget is None:
        return
    committed = state.config.knobs.commit_and_settle
    if isinstance(pacer, DualPacer):
        pacer.charge(cost_usd - (budget if first and not committed else charged), budget)
    elif committed:
        pacer.correct(cost_usd - charged, age=state.seq - record.seq)
    elif first:
        pacer.observe(cost_usd, budget)


def price_of(state: RouterState, record: RequestRecord, called: str) -> Price | None:
    """Return what a bill's tokens are priced at: as at the decision, or what another model that was called costs now.

    None if that is not in the portfolio. Of a request that has its bill, what that was priced at.
    """
    if called == record.model or record.bill is not None:
        return record.price
    row = state.arms.row
    return state.arms.price[row[called]] if called in row else None


def learn_cost(state: RouterState, model: str, price: Price, cost_usd: float, x: Vector | None) -> None:
    """Teach a model's arm a request's first bill; without a context x, shape (d,), only the mean.

    What teaches is at most `OUTLIER` times what was expected.
    """
    arms = state.arms
    k = arms.row.get(model, -1)
    per_1k = price.per_1k
    # Its arm was dropped; or it was free and has a price now, or the reverse: the ratio is another quantity.
    if k < 0 or (per_1k == 0.0) != (arms.per_1k[k] == 0.0):
        return
    ratio = cost_usd / (per_1k if per_1k > cost_model.MIN_PRICE_PER_1K else cost_model.MIN_PRICE_PER_1K)
    mean = arms.ratio[k]
    knobs = state.config.knobs
    if not (knobs.dollar_dual or knobs.commit_and_settle):
        arms.ratio[k], arms.bills[k] = cost_model.follow(mean, arms.bills[k], cost_model.winsorised(ratio, mean))
        arms.mean_cost_usd[k] = arms.ratio[k] * arms.list_price[k]
        return
    costs = arms.costs[k]
    deviation = 0.0 if x is None else cost_model.deviation(costs, x, arms.work)
    predicted = cost_model.predict(mean, deviation)
    if knobs.drift_alarms and arms.bills[k] > cost_model.KNOWN_AFTER:
        budget = state.config.budget_usd_per_request
        budgets = cost_usd / budget if budget is not None else 0.0
        shift = cost_model.surprise(costs.watch, ratio, predicted, budgets=budgets, bills=arms.bills[k], now=state.latest)
        if shift is not None:
            factor = _rescale(state, k, shift)
            predicted, deviation = predicted * factor, deviation * factor
    ratio = cost_model.winsorised(ratio, predicted)
    arms.ratio[k], arms.bills[k] = cost_model.follow(arms.ratio[k], arms.bills[k], ratio)
    arms.mean_cost_usd[k] = arms.ratio[k] * arms.list_price[k]
    if x is not None:
        cost_model.regress(costs, x, ratio - arms.ratio[k] - deviation, arms.work)
        arms.show_costs(k)
    state.touched.add(cost_piece(model))


def _rescale(state: RouterState, k: int, shift: Shift) -> float:
    """Multiply every expectation of arm k by what a shift says; the mean may then move fast."""
    arms, factor = state.arms, cost_model.factor_of(shift)
    state.alerts.append(
        Alert(
            kind="drift",
            model=arms.names[k],
            signal="cost",
            direction="up" if factor > 1.0 else "down",
            size=arms.ratio[k] * abs(factor - 1.0),
            since=shift.since,
            observed_at=state.latest,
            evidence={"factor": factor, "cusum": shift.evidence, "limit": shift.limit, "bills": shift.count},
        )
    )
    arms.ratio[k] *= factor
    arms.bills[k] = min(arms.bills[k], cost_model.MEMORY_AFTER_SHIFT)
    arms.costs[k].w *= factor
    arms.show_costs(k)
    if isinstance(state.pacer, DualPacer):
        state.pacer.stale = EVERY
    return factor


def price_of_a_dollar(state: RouterState, pacer: DualPacer, x: Vector, limited_to: frozenset[str] | None) -> tuple[float, float]:
    """Take the next request's context in; return λ_t and what it makes of a dollar, in reward."""
    budget = state.config.budget_usd_per_request
    assert budget is not None
    state.touched.add(pacer.prepare(state.arms, x, budget, limited_to))
    if pacer.lambda_t == UNREACHABLE or state.unreachable:
        review_budget(state)
    return pacer.lambda_t, min(pacer.lambda_t / budget, MOST_PER_DOLLAR)


def spare(state: RouterState) -> Spare:
    """Return what may still be borrowed: for a pull as much as may be saved, for a probe twice that, and so while nothing binds."""
    budget = state.config.budget_usd_per_request
    if budget is None or not isinstance(state.pacer, DualPacer):
        return UNLIMITED
    owed = state.pacer.debt_usd
    probe = HORIZON * budget - owed
    return Spare(probe, CREDIT * budget - owed if state.pacer.lambda_t > 0.0 else probe)


def reach_usd(state: RouterState) -> float:
    """Return what one call may be expected to cost: no single one is to cost more than may be saved."""
    budget = state.config.budget_usd_per_request
    assert budget is not None
    return CREDIT * budget


def review_budget(state: RouterState) -> None:
    """Raise an alert when even the cheapest model has become dearer than the budget; allow the next one when it is not."""
    budget, arms = state.config.budget_usd_per_request, state.arms
    assert budget is not None
    taking = [k for k, at in enumerate(arms.retired_at) if at is None]
    cheapest_usd, k = min((arms.ratio[k] * arms.list_price[k], k) for k in taking)
    if cheapest_usd <= budget:
        state.unreachable = False
    elif not state.unreachable and arms.bills[k] > UNREACHABLE_AFTER and cheapest_usd > UNREACHABLE_FROM * budget:
        state.unreachable = True
        state.alerts.append(
            Alert(
                kind="budget_unreachable",
                model=arms.names[k],
                direction="up",
                size=cheapest_usd / budget,
                since=state.latest,
                observed_at=state.latest,
                evidence={"cheapest_usd": cheapest_usd, "budget_usd_per_request": budget},
            )
        )
