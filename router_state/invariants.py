"""What must hold after every step; tests call `check` after each event."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from router_state.arms import log_price
from router_state.record import RequestRecord
from router_state.state import RouterState


def check(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    """Raise AssertionError naming the first invariant that does not hold. O(requests + K·d³): not for the hot path."""
    _check_arms(state)
    _check_books(state, records)


def _check_arms(state: RouterState) -> None:
    arms, identity = state.arms, np.eye(state.arms.d)
    columns = (arms.decay, arms.forgotten, arms.last_update, arms.last_played, arms.pulls_left, arms.retired_at, arms.price)
    assert all(len(column) == len(arms.names) for column in columns), "a column of the arms has another length"
    for k, name in enumerate(arms.names):
        A, A_inv = arms.A_hat[k], arms.A_hat_inv[k]
        assert np.isfinite(arms.stack[k]).all() and np.isfinite(A).all() and np.isfinite(arms.b_hat[k]).all(), f"{name}: not finite"
        assert (A == A.T).all() and (A_inv == A_inv.T).all(), f"{name}: not symmetric"
        assert np.abs(A @ A_inv - identity).max() < 1e-6, f"{name}: A_inv is not the inverse of A"
        assert np.allclose(arms.theta[k], A_inv @ arms.b_hat[k], rtol=1e-9, atol=1e-9), f"{name}: θ is not A⁻¹b"
        assert 0.1 <= arms.decay[k] <= 1.0, f"{name}: less than a tenth of the ridge is left"
        assert max(arms.last_update[k], arms.last_played[k]) <= state.t, f"{name}: ahead of the clock"
        assert arms.pulls_left[k] >= 0, f"{name}: negative pulls"
        assert arms.log_price[k] == log_price(arms.price[k].per_1k), f"{name}: stale price"


def _check_books(state: RouterState, records: Mapping[str, RequestRecord]) -> None:
    assert sorted(record.seq for record in records.values()) == list(range(1, state.seq + 1)), "seq has gaps"
    bills = [record.bill.cost_usd for record in records.values() if record.bill is not None]
    assert state.settled == len(bills), "settled is not the number of bills"
    assert math.isclose(state.spend_usd, math.fsum(bills), rel_tol=1e-9, abs_tol=1e-12), "spend is not the sum of the bills"
    awaited = {request_id: r for request_id, r in records.items() if r.bill is None and not r.expired}
    assert list(state.open_commitments) == sorted(awaited, key=lambda request_id: awaited[request_id].seq), "open commitments"
    committed = math.fsum(r.expected_cost_usd for r in awaited.values())
    assert math.isclose(state.committed_usd, committed, rel_tol=1e-9, abs_tol=1e-12), "committed is not what is awaited"
    assert state.rewards_applied == sum(record.label is not None for record in records.values()), "rewards_applied"
    if state.pacer is not None:
        assert 0.0 <= state.pacer.lambda_t <= 5.0, "λ_t out of range"
