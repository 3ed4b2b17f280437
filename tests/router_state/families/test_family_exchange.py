"""The exchange of what a family told: regressions without it are as they would have been."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.config import LIVE, ModelConfig, Price, RouterConfig
from router_state.errors import DamagedState
from router_state.families.family_exchange import PIECE, Exchange
from router_state.families.family_sums import Sums, bytes_of

D = 3


def learned(seed: int) -> tuple[Played, Exchange]:
    """Return a router of two models that has learned, and the exchange of its regressions."""
    models = {name: ModelConfig(Price(0.1, 0.4)) for name in "ab"}
    engine = Played.start(RouterConfig(models, None, D, "live", LIVE))
    rng = np.random.default_rng(seed)
    for k in range(30):
        engine.decide(str(k), np.append(rng.normal(size=D - 1), 1.0), now=float(k))
        engine.settle(str(k), cost_usd=float(rng.lognormal(-7.0)))
        engine.learn(str(k), reward=float(rng.random()))
    state = engine.state
    exchange = Exchange(state.arms, state.journal)
    for arm in state.arms:
        exchange.met.add(arm.name)
    return engine, exchange


def told(seed: int) -> bytes:
    """Return sums that others may have told."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(40, D - 1)), np.ones(40)])
    return bytes_of(Sums(X.T @ X, X.T @ rng.random(40)))


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_own_evidence_does_not_move_with_what_is_told(seed: int, times: int) -> None:
    _, exchange = learned(seed)
    before = exchange.own(0, 0.997)
    for k in range(times):
        exchange.replace([{"a": told(seed + k)}, {}], 0.997)
        assert set(exchange.outside) == {"a"} and exchange.pieces == (f"{PIECE}a",)
    exchange.give_back(0.997)
    after = exchange.own(0, 0.997)
    for name in "ab":
        np.testing.assert_allclose(after[name].A, before[name].A, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(after[name].b, before[name].b, rtol=1e-6, atol=1e-6)


def test_a_record_of_what_is_held_is_read_back_or_is_damaged() -> None:
    engine, exchange = learned(1)
    exchange.replace([{"a": told(1)}, {"a": told(2)}], 0.997)
    held = exchange.pack(f"{PIECE}a")
    assert held is not None and exchange.pack("another") is None
    body = bytes(held.body)
    other = Exchange(engine.state.arms, engine.state.journal)
    other.restore(lambda piece: body if piece == f"{PIECE}a" else b"")
    assert other.is_finite and other.outside["a"].taken == held.taken
    with pytest.raises(DamagedState, match="family"):
        other.restore(lambda _: body[:-1])
