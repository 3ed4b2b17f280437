"""What must hold after every step; tests call `check` after each event."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from router_state.arms import Arms
from router_state.costs.input_tokens import BEGINS
from router_state.costs.ratio import list_price_of
from router_state.learning.regression import RIDGE_FLOOR
from router_state.pacing.dollar_dual import UNREACHABLE, DualPacer
from router_state.pacing.pacer import LAMBDA_MAX, EmaPacer
from router_state.pacing.window import LENGTH
from router_state.record import RequestRecord
from router_state.state.router import RouterState


def check(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    """Raise AssertionError naming the first invariant that does not hold. O(requests + K·d³): not
    for the hot path."""
    _check_arms(state)
    _check_books(state, records)


def _check_arms(state: RouterState) -> None:
    arms, d, stack = state.arms, state.arms.d, state.arms.stack
    _check_inverses(arms)
    for k, arm in enumerate(arms):
        name, belief, costs = arm.name, arm.belief, arm.costs
        assert np.isfinite(stack.rows[k]).all() and np.isfinite(stack.tails[k]).all(), (
            f"{name}: not finite"
        )
        assert max(belief.pending, costs.pending) < max(1, len(belief.tails)), (
            f"{name}: pending rows were not taken off"
        )
        assert RIDGE_FLOOR <= belief.decay <= 1.0, f"{name}: less than a tenth of the ridge is left"
        assert max(belief.last_update, belief.last_played) <= state.t, f"{name}: ahead of the clock"
        assert arm.pulls_left >= 0, f"{name}: negative pulls"
        assert costs.inverse.shape == (d, d) and 0.0 <= costs.ratio < np.inf, f"{name}: cost model"
        assert (
            np.shares_memory(belief.theta, stack.rows) and (belief.theta == stack.rows[k, d]).all()
        ), f"{name}: another row"
        assert (costs.w == stack.rows[k, d + 1]).all(), (
            f"{name}: costs are not scored as they are known"
        )
        assert 0.0 < costs.input_share <= 1.0 and 0.0 < costs.paid <= 1.0, f"{name}: input tokens"
        assert costs.mean_usd == costs.ratio * costs.list_price, f"{name}: the mean cost is stale"
        assert arm.per_1k == arm.price.per_1k and costs.list_price == list_price_of(arm.price), (
            f"{name}: the price is stale"
        )
    _check_derived(state)


def _check_inverses(arms: Arms) -> None:
    if not arms.names:
        return
    for inverses in (
        np.stack([arm.belief.A_inv() for arm in arms]),
        np.stack([arm.costs.undecayed() for arm in arms]),
    ):
        symmetric = (inverses == inverses.swapaxes(1, 2)).all(axis=(1, 2))
        positive = np.linalg.eigvalsh(inverses)[:, 0] > 0.0
        for arm, is_symmetric, is_positive in zip(arms, symmetric, positive, strict=True):
            assert is_symmetric, f"{arm.name}: not symmetric"
            assert is_positive, f"{arm.name}: not positive definite"


def _check_derived(state: RouterState) -> None:
    arms = state.arms
    derived = ("row", "names", "open", "highest_per_1k", "onboarding", "suspect")
    assert arms.penalties(0.5) == [0.5 * arm.log_price for arm in arms], "penalties are stale"
    assert arms.stack.prompt_costs or not arms.stack.rows[:, arms.d + 1].any(), (
        "costs are predicted as if no prompt mattered"
    )
    assert arms.tokens.in_use == (arms.tokens.count >= BEGINS), (
        "tokens are in use too early or late"
    )
    # Derived anew and compared: a cache that nobody renewed differs here.
    before = [getattr(arms, name) for name in derived]
    arms.derive()
    for name, value in zip(derived, before, strict=True):
        assert getattr(arms, name) == value, f"{name} is stale"


def _check_books(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    gone = state.forgotten
    numbers = {record.seq for record in records.values()}
    assert len(numbers) == len(records) == state.seq - gone.requests and all(
        1 <= n <= state.seq for n in numbers
    ), "seq has gaps"
    bills = [record.bill.cost_usd for record in records.values() if record.bill is not None]
    assert state.settled == len(bills) + gone.bills, "settled is not the number of bills"
    spent = math.fsum([gone.spend_usd, *bills])
    assert math.isclose(state.spend_usd, spent, rel_tol=1e-9, abs_tol=1e-12), (
        "spend is not the sum of the bills"
    )
    awaited = {
        request_id: r for request_id, r in records.items() if r.bill is None and not r.expired
    }
    assert list(state.open_commitments) == sorted(
        awaited, key=lambda request_id: awaited[request_id].seq
    ), "open commitments"
    committed = math.fsum(r.expected_cost_usd for r in awaited.values())
    assert math.isclose(state.committed_usd, committed, rel_tol=1e-9, abs_tol=1e-12), (
        "committed is not what is awaited"
    )
    labels = sum(record.label is not None for record in records.values())
    assert state.rewards_applied == labels + gone.rewards, (
        "rewards_applied is not the number of labels"
    )
    assert state.pacer.budget_usd == state.config.budget_usd_per_request, (
        "another budget is paced than was declared"
    )
    if isinstance(state.pacer, EmaPacer):
        assert 0.0 <= state.pacer.lambda_t <= LAMBDA_MAX, "λ_t out of range"
    if isinstance(state.pacer, DualPacer):
        _check_dual(state.pacer)


def _check_dual(pacer: DualPacer) -> None:
    window = pacer.window
    assert 0.0 <= pacer.lambda_t <= UNREACHABLE and math.isfinite(pacer.debt_usd), (
        "λ_t or debt out of range"
    )
    assert (
        0 <= window.size <= LENGTH and window.next < LENGTH and np.isfinite(window.contexts).all()
    ), "window"
    assert all(slot < window.size for slot in window.limited), "a limit without a context"
