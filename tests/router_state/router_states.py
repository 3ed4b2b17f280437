"""A router in every state that it can be in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.played import Played
from router_state.caps.bucket import Bucket, Cap
from router_state.caps.caps import Caps
from router_state.config import Price
from router_state.router import RouterState
from tests.router_state.core_reference import CHEAP, DEAR, PORTFOLIO, declaration

CAPS = (Cap(0.01, 3600.0), Cap(60.0, 86_400.0, hard=True))


def buckets_of(state: RouterState) -> list[Bucket]:
    """Return what is left of a router's caps."""
    return [bucket for one in state.capabilities if isinstance(one, Caps) for bucket in one.buckets]


def play(
    engine: Played, count: int, *, only: str | None = None, reward: float = 0.8, bill: float = 1.0
) -> None:
    """Let a router decide `count` requests, and tell it what they cost (in list prices) and how
    good they were.
    """
    rng = np.random.default_rng([7, engine.state.seq])
    for number in range(engine.state.seq, engine.state.seq + count):
        x = np.append(rng.normal(size=engine.state.arms.d - 1), 1.0)
        allowed = None if only is None else {only}
        made = engine.decide(f"r-{number}", x, now=1e9 + number, allowed_models=allowed)
        engine.settle(
            f"r-{number}", cost_usd=bill * float(rng.lognormal(0, 0.3)) * made.price.per_1k
        )
        engine.learn(f"r-{number}", reward=min(1.0, reward + 0.1 * float(rng.random())))


def _played(count: int = 60, **declared: object) -> Played:
    known: Any = {"profile": "live", "pulls": 2, **declared}
    engine = Played.start(replace(declaration(**known), offset=3))
    play(engine, count)
    return engine


def _capped() -> Played:
    config = replace(declaration(profile="live", pulls=2), capabilities={"caps": CAPS})
    engine = Played.start(config)
    play(engine, 20, bill=6.0)
    assert [bucket.exhausted for bucket in buckets_of(engine.state)] == [True, False]
    return engine


def _suspect() -> Played:
    engine = _played(150, epsilon=0.3)
    play(engine, 60, only="dear")  # only what is known of a model can be seen to change
    for _ in range(10):
        play(engine, 10, only="dear", reward=0.0)
    assert engine.state.arms["dear"].suspicion is not None
    return engine


def _retired() -> Played:
    engine = _played()
    models = {
        "cheap": engine.state.config.models["cheap"],
        "dear": replace(engine.state.config.models["dear"], price=CHEAP),
    }
    engine.configure(replace(engine.state.config, models=models), now=1e9 + 60)
    play(engine, 5)
    return engine


def _limited() -> Played:
    engine = _played()
    play(engine, 9, only="middle")
    assert engine.state.arms.window is not None and engine.state.arms.window.limited
    return engine


def _unreachable() -> Played:
    engine = _played(200, budget=1e-6)
    assert engine.state.unreachable
    return engine


STATES: dict[str, Callable[[], Played]] = {
    "empty": lambda: Played.start(declaration({}, profile="live", budget=None)),
    "declared": lambda: Played.start(declaration(profile="live", pulls=None)),
    "onboarding": lambda: _played(10, pulls=20),
    "unpaced": lambda: _played(budget=None),
    "paper": lambda: _played(profile="paper"),
    "live": lambda: _played(200),
    "limited": _limited,
    "capped": _capped,
    "suspect": _suspect,
    "retired": _retired,
    "unreachable": _unreachable,
    "free": lambda: _played(prices={"free": Price(0.0, 0.0), "dear": DEAR}),
    "wide": lambda: _played(21, prices={"cheap": PORTFOLIO["cheap"]}, dimensions=66, pulls=0),
}
