"""Some worlds of `make worlds`, other ones each time Hypothesis is told so."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.worlds.drawing import BUDGETS, CONTEXTS, COSTS, REWARDS, draw
from tests.worlds.playing import play


@pytest.mark.parametrize("seed", range(0, 128, 8))
def test_promises_hold_in_a_long_world(seed: int) -> None:
    assert play(draw(seed, n=1_200)).broken == []


def test_promises_hold_in_a_world_that_once_broke_one() -> None:
    """A budget of 1e-260: the square of a penalty is infinite, and a propensity was none."""
    assert play(draw(1342, n=100)).broken == []


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=100)
@given(st.integers(1_000, 2**31))
def test_promises_hold_in_any_world(seed: int) -> None:
    assert play(draw(seed, n=60)).broken == []


def test_every_kind_of_world_is_drawn() -> None:
    found = [draw(seed, n=2).kinds for seed in range(400)]
    for name, kinds in (
        ("contexts", CONTEXTS),
        ("costs", COSTS),
        ("rewards", REWARDS),
        ("budget", BUDGETS),
    ):
        assert {kind[name] for kind in found} == set(kinds)
