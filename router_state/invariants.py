"""What must hold after every step; tests call `check` after each event."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from router_state.dual import UNREACHABLE, DualPacer
from router_state.learning import RIDGE_FLOOR
from router_state.pacing import LAMBDA_MAX, EmaPacer
from router_state.record import RequestRecord
from router_state.state import RouterState
from router_state.window import LENGTH


def check(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    """Raise AssertionError naming the first invariant that does not hold. O(requests + K·d³): not for the hot path."""
    _check_arms(state)
    _check_books(state, records)


def _check_arms(state: RouterState) -> None:
    arms, d = state.arms, state.arms.d
    columns = (arms.decay, arms.forgotten, arms.last_update, arms.last_played, arms.pulls_left, arms.retired_at, arms.price)
    assert all(len(column) == len(arms.names) for column in columns), "a column of the arms has another length"
    for k, name in enumerate(arms.names):
        A_inv, model = arms.A_inv(k), arms.costs[k]
        assert np.isfinite(arms.stack[k]).all() and np.isfinite(arms.tails[k]).all(), f"{name}: not finite"
        for inverse in (A_inv, model.inverse):
            assert (inverse == inverse.T).all(), f"{name}: not symmetric"
            assert np.linalg.eigvalsh(inverse)[0] > 0.0, f"{name}: not positive definite"
        assert arms.pending[k] < max(1, arms.tails.shape[1]), f"{name}: pending rows were not taken off"
        assert RIDGE_FLOOR <= arms.decay[k] <= 1.0, f"{name}: less than a tenth of the ridge is left"
        assert max(arms.last_update[k], arms.last_played[k]) <= state.t, f"{name}: ahead of the clock"
        assert arms.pulls_left[k] >= 0, f"{name}: negative pulls"
        assert model.inverse.shape == (d, d) and 0.0 <= arms.ratio[k] < np.inf, f"{name}: cost model"
    _check_derived(state)


def _check_derived(state: RouterState) -> None:
    arms = state.arms
    derived = ("per_1k", "list_price", "log_price", "row", "open", "highest_per_1k", "onboarding", "suspect", "mean_cost_usd")
    weight, penalties = arms.penalty
    assert penalties == [weight * c for c in arms.log_price], "penalties are stale"
    assert arms.prompt_costs or not arms.stack[:, arms.d + 1].any(), "costs are predicted as if no prompt mattered"
    before = [getattr(arms, name) for name in derived]
    arms.derive()
    for name, value in zip(derived, before, strict=True):
        assert getattr(arms, name) == value, f"{name} is stale"


def _check_books(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    gone = state.forgotten
    numbers = {record.seq for record in records.values()}
    assert len(numbers) == len(records) == state.seq - gone.requests and all(1 <= n <= state.seq for n in numbers), "seq has gaps"
    bills = [record.bill.cost_usd for record in records.values() if record.bill is not None]
    assert state.settled == len(bills) + gone.bills, "settled is not the number of bills"
    spent = math.fsum([gone.spend_usd, *bills])
    assert math.isclose(state.spend_usd, spent, rel_tol=1e-9, abs_tol=1e-12), "spend is not the sum of the bills"
    awaited = {request_id: r for request_id, r in records.items() if r.bill is None and not r.expired}
    assert list(state.open_commitments) == sorted(awaited, key=lambda request_id: awaited[request_id].seq), "open commitments"
    committed = math.fsum(r.expected_cost_usd for r in awaited.values())
    assert math.isclose(state.committed_usd, committed, rel_tol=1e-9, abs_tol=1e-12), "committed is not what is awaited"
    labels = sum(record.label is not None for record in records.values())
    assert state.rewards_applied == labels + gone.rewards, "rewards_applied is not the number of labels"
    assert (state.pacer is None) == (state.config.budget_usd_per_request is None), "paced without a budget, or not with one"
    if isinstance(state.pacer, EmaPacer):
        assert 0.0 <= state.pacer.lambda_t <= LAMBDA_MAX, "λ_t out of range"
    if isinstance(state.pacer, DualPacer):
        _check_dual(state.pacer)


def _check_dual(pacer: DualPacer) -> None:
    window = pacer.window
    assert 0.0 <= pacer.lambda_t <= UNREACHABLE and math.isfinite(pacer.debt_usd), "λ_t or debt out of range"
    assert 0 <= window.size <= LENGTH and window.next < LENGTH and np.isfinite(window.contexts).all(), "window"
    assert all(slot < window.size for slot in window.limited), "a limit without a context"
