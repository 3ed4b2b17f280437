"""Estimates that are made for many routers at once: the same to the bit, only for who decides."""

from __future__ import annotations

import numpy as np
import pytest

from router_state.config import ModelConfig, Price, RouterConfig, knobs_for
from router_state.engine import Engine
from router_state.errors import NoAllowedModel
from router_state.foreseeing import foreseen
from router_state.state import portable


def routers(count: int) -> list[Engine]:
    """Return routers of one to four models, some of them free, in two sizes."""
    found = []
    for i in range(count):
        models = {f"m{k}": ModelConfig(Price(1.0 * (k > 2), 1.0 + k)) for k in range(1 + i % 4)}
        models["free"] = ModelConfig(Price(0.0, 0.0))
        d = 4 + i % 2
        found.append(Engine.start(RouterConfig(models, 1e-3, d, "live", knobs_for("live"))))
    return found


def ask(engines: list[Engine], number: int) -> None:
    """Let all routers decide a request."""
    for i, engine in enumerate(engines):
        x = np.random.default_rng([number, i]).standard_normal(engine.state.arms.d)
        x[-1] = 1.0
        engine.decide(str(number), x, now=float(number))


def teach(engines: list[Engine], number: int) -> None:
    """Let them learn bill and reward, some of them late."""
    for i, engine in enumerate(engines):
        rng = np.random.default_rng([number, i, 1])
        late = number - i % 3
        if late >= 0:
            engine.settle(str(late), cost_usd=float(rng.lognormal(-7.0, 0.5)))
            engine.learn(str(late), reward=float(rng.uniform()))


def test_what_is_estimated_together_is_what_each_router_estimates_alone_to_the_bit() -> None:
    alone, together = routers(24), routers(24)
    ahead = 0
    for number in range(25):
        ask(alone, number)
        with foreseen(engine.state for engine in together):
            ahead += sum(bool(engine.state.foreseen[1]) for engine in together)
            ask(together, number)
        teach(alone, number)
        teach(together, number)
    assert ahead > 200
    for one, other in zip(alone, together, strict=True):
        assert portable.pack(one.state, {}) == portable.pack(other.state, {})


def test_a_refused_request_leaves_nothing_of_what_was_estimated_ahead() -> None:
    engines = routers(2)
    ask(engines, 0)
    teach(engines, 0)
    before = [portable.pack(engine.state, {}) for engine in engines]
    with foreseen(engine.state for engine in engines):
        for engine in engines:
            with pytest.raises(NoAllowedModel):
                engine.decide("1", np.ones(engine.state.arms.d), now=1.0, allowed_models=["other"])
    assert [portable.pack(engine.state, {}) for engine in engines] == before
    assert all(engine.state.foreseen == ((-1, -1, -1), ()) for engine in engines)


def test_what_is_learned_in_between_is_estimated_anew() -> None:
    alone, together = routers(2), routers(2)
    for engines in (alone, together):
        ask(engines, 0)
        ask(engines, 1)
        teach(engines, 0)
    with foreseen(engine.state for engine in together):
        teach(together, 1)
        ask(together, 2)
    teach(alone, 1)
    ask(alone, 2)
    for one, other in zip(alone, together, strict=True):
        assert portable.pack(one.state, {}) == portable.pack(other.state, {})


def test_a_router_that_cannot_be_estimated_fails_alone() -> None:
    engines = routers(5)[::2]
    for number in range(3):
        ask(engines, number)
        teach(engines, number)
    broken, other = engines[:2]
    for arm in broken.state.arms:
        arm.rewards.inverse[:] = 0.0
    with foreseen(engine.state for engine in (broken, other)):
        with pytest.raises(np.linalg.LinAlgError):
            ask([broken], 3)
        ask([other], 3)
