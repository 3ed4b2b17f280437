"""Bills and rewards: whole routers move alike compiled and as Python, and what is no state, record
or event is an error of Python.
"""

from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import router_state.kernel as compiled
from router_state import feedback
from router_state.config import Cap, ModelConfig, Price, RouterConfig
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.events import Charged, Judged
from router_state.kernel import Books, Label, RequestRecord, Settlement
from router_state.profiles import knobs_for
from router_state.state import portable, record_bytes

D = 4
MODELS = {"a": ModelConfig(Price(0.1, 0.2)), "b": ModelConfig(Price(1.0, 2.0))}


def router(profile: str = "live", **given: Any) -> Engine:
    """Return a router of two models."""
    config = RouterConfig(MODELS, 1e-3, D, profile, knobs_for(profile, {}), **given)
    return Engine.start(config)


def play(engine: Engine, n: int = 60) -> str:
    """Let a router decide, be billed and judged, twice, late, of other models and by revisions;
    return a digest of its state and of its records."""
    rng = np.random.default_rng(1)
    for i in range(n):
        x = np.append(rng.normal(size=D - 1), 1.0)
        engine.decide(str(i), x, now=float(i), session_id=str(i % 7) if i % 3 else None)
        late, usd, reward = str(max(i - i % 5, 0)), float(rng.lognormal(-8.0)), float(rng.random())
        status = "timeout" if i % 11 == 5 else None
        engine.settle(late, cost_usd=usd, revision=i % 4, status=status)
        engine.settle(str(i), tokens=(100 + i, 50), model="a" if i % 13 == 6 else None, revision=1)
        engine.learn(late, reward=reward, revision=i % 3)
        if i % 6 == 2:
            engine.learn("\x1f" + str(i % 7), reward=reward)
        if i == n // 2:
            engine.expire(now=1e9, limit=2)
            engine.forget_early(keep=n // 3)
    kept = [record_bytes.pack_record(record) for record in engine.records.values()]
    return blake2b(b"".join([portable.pack(engine.state, {}), *kept])).hexdigest()


AS_PYTHON = """
import sys
sys.modules["router_state.kernel._compiled"] = None
from router_state import kernel
from router_state.config import Cap
from tests.unit.test_kernel_feedback import play, router
assert not kernel.COMPILED
print(play(router("live")), play(router("paper")), play(router(caps=(Cap(1.0, 3600.0),))))
"""


def test_whole_routers_move_alike_compiled_and_as_python() -> None:
    run = subprocess.run([sys.executable, "-c", AS_PYTHON], capture_output=True, check=True)
    moved = play(router("live")), play(router("paper")), play(router(caps=(Cap(1.0, 3600.0),)))
    assert run.stdout.decode().split() == list(moved)


def decided(**given: Any) -> Engine:
    """Return a router with one request, whose record has these fields."""
    engine = router()
    engine.decide("r", np.array([0.1, 0.2, 0.3, 1.0]), now=1.0)
    for name, value in given.items():
        setattr(engine.records["r"], name, value)
    return engine


def billed(bill: Any = None, *, others: Any = feedback, **given: Any) -> object:
    """Bill the request of `decided`."""
    engine = decided(**given)
    charged = Charged("r", 1e-4) if bill is None else bill
    return compiled.settle(engine.state, engine.records, charged, others)


def judged(reward: Any = None, **given: Any) -> object:
    """Judge the request of `decided`."""
    engine = decided(**given)
    return compiled.learn(engine.state, engine.records, reward or Judged("r", 0.5))


def test_a_plain_bill_and_reward_fit() -> None:
    assert billed() == judged() == "applied"


@pytest.mark.parametrize(
    "call",
    [
        lambda: compiled.settle(None, {}, Charged("r", 1.0), feedback),  # type: ignore[arg-type]
        lambda: compiled.settle(Books(), {}, Charged("r", 1.0), feedback),
        lambda: compiled.settle(Books(), {"r": 1}, Charged("r", 1.0), feedback),  # type: ignore[dict-item]
        lambda: compiled.settle(Books(), None, Charged("r", 1.0), feedback),  # type: ignore[arg-type]
        lambda: compiled.learn(None, {}, Judged("r", 1.0)),  # type: ignore[arg-type]
        lambda: compiled.learn(Books(), {"r": 1}, Judged("r", 1.0)),  # type: ignore[dict-item]
        lambda: compiled.learn(Books(), {"r": RequestRecord()}, Judged("r", 1.0)),
        lambda: billed(Charged("r", "x")),  # type: ignore[arg-type]
        lambda: billed(Charged("r", float("nan"))),
        lambda: billed(SimpleNamespace(request_id="r")),
        lambda: billed(Charged(None, 1e-4)),  # type: ignore[arg-type]
        lambda: billed(others=None, call="x"),
        lambda: billed(price=None, model="b"),
        lambda: billed(x=np.ones(2)),
        lambda: billed(x=np.array([0.1, 0.2, 0.3, 1.0], np.float32)),
        lambda: billed(bill=1.0),
        lambda: billed(label=1.0),
        lambda: billed(Charged("r", 1e-4, x=np.ones(2)), x=None),
        lambda: judged(Judged("r", "x")),  # type: ignore[arg-type]
        lambda: judged(Judged("r", 1.5)),
        lambda: judged(Judged("r", float("nan"))),
        lambda: judged(x=None),
        lambda: judged(x=np.ones(2)),
        lambda: judged(Judged("r", 0.5, x=np.ones(2)), x=None),
        lambda: judged(label=0.5),
        lambda: Books().bill("r", None, 1.0),  # type: ignore[arg-type]
        lambda: Books().commit("r", None, 1),  # type: ignore[arg-type]
        lambda: Books().expire("r", None),  # type: ignore[arg-type]
        lambda: Books().forget("r", None),  # type: ignore[arg-type]
        lambda: Books.__new__(Books).bill("r", RequestRecord(), 1.0),
        lambda: setattr(Books(), "seq", 2**70),
        lambda: setattr(Books(), "open_commitments", []),
        lambda: Settlement("x", 0),  # type: ignore[arg-type]
        lambda: Label(None, "judge", 0, 0, 0.0),  # type: ignore[arg-type]
        lambda: setattr(RequestRecord(), "seq", None),
    ],
)
def test_what_does_not_fit_is_an_error_of_python(call: Any) -> None:
    errors = (ValueError, TypeError, AttributeError, LookupError, OverflowError)
    with pytest.raises((*errors, RouterStateError)):
        call()
