"""Numbers that are declared once are read and written in one order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from router_state.changes import Journal
from router_state.config import Price
from router_state.engine import Engine
from router_state.kernel import Arm, SharedPrior
from router_state.learning.guess import COSTS as GUESS
from router_state.packing import layout
from router_state.packing.layout import Numbers
from router_state.router import RouterState
from tests.router_state.core_reference import declaration
from tests.router_state.router_states import STATES

ALL = {name: one for name, one in vars(layout).items() if isinstance(one, Numbers)}


def test_what_is_put_is_what_was_taken() -> None:
    numbers = Numbers("left", "deep.right", "deep.er.count", whole=("deep.er.count",))
    one: Any = SimpleNamespace(left=1.5, deep=SimpleNamespace(right=-2.0))
    one.deep.er = SimpleNamespace(count=3)
    other: Any = SimpleNamespace(left=0.0, deep=SimpleNamespace(right=0.0))
    other.deep.er = SimpleNamespace(count=0)
    # As arrays hand them back: floats, all of them.
    numbers.put(other, map(float, numbers.of(one)))
    assert numbers.of(other) == (1.5, -2.0, 3)
    assert type(other.deep.er.count) is int
    assert len(numbers) == 3


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0]])
def test_too_few_or_too_many_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="argument"):
        Numbers("a", "b").put(SimpleNamespace(a=0.0, b=0.0), values)


@pytest.mark.parametrize("name", ALL)
def test_no_name_is_declared_twice(name: str) -> None:
    assert len(set(ALL[name].names)) == len(ALL[name])


def blank(engine: Engine, arm: Arm) -> dict[str, tuple[Any, Any]]:
    """Return who holds the numbers of each kind, and another of its kind that knows nothing."""
    state, journal = engine.state, Journal()
    bills = SharedPrior("bills", state.arms.d, GUESS, journal)
    other = Engine.start(declaration(profile=state.config.profile)).state
    fresh = Arm("other", bills, Price(1.0, 1.0), journal)
    found: dict[str, tuple[Any, Any]] = {
        "HEAD": (arm, fresh),
        "REWARDS": (arm, fresh),
        "COSTS": (arm, fresh),
        "SHARED": (state.arms.bills, bills),
        "COUNTERS": (state, RouterState(state.config)),
        "EMA" if state.config.profile == "paper" else "DUAL": (state.pacer, other.pacer),
    }
    return found


@pytest.mark.parametrize("name", ["paper", "live", "suspect"])
def test_numbers_of_a_router_that_has_worked_come_back_with_their_types(name: str) -> None:
    engine = STATES[name]()
    for arm in engine.state.arms:
        for kind, (one, other) in blank(engine, arm).items():
            numbers = ALL[kind]
            numbers.put(other, numbers.of(one))
            assert numbers.of(other) == numbers.of(one)
            assert list(map(type, numbers.of(other))) == list(map(type, numbers.of(one))), kind
