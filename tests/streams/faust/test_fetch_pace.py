"""Fetches leave a tick apart while the event loop is busy, and at once while it is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.faust.fetch_pace import CALM, FULL, LONGEST, FetchPace

SHARES = st.floats(0, 1)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Fetcher:
    """What asks when the next fetch leaves."""

    def __init__(self) -> None:
        self.assignments: list[object] = []

    def _get_actions_per_node(self, assignment: object) -> Any:
        self.assignments.append(assignment)
        return ["fetch"], {}, 0.2, False, []


def paced(share: float) -> tuple[FetchPace, Fetcher, Clock]:
    clock, fetcher = Clock(), Fetcher()
    pace = FetchPace(lambda: share, clock)
    pace.of(fetcher)
    return pace, fetcher, clock


@given(SHARES)
def test_the_tick_grows_with_the_load_and_is_none_below_a_third(share: float) -> None:
    pace, _, _ = paced(share)
    pace.rest()
    busier, _, _ = paced(min(share + 0.1, 1.0))
    busier.rest()
    assert 0.0 <= pace.left <= busier.left <= LONGEST + 1e-9
    assert (pace.left == 0.0) == (share <= CALM) or pace.left < 1e-9
    if share >= FULL:
        assert pace.left == pytest.approx(LONGEST)


def test_a_calm_loop_fetches_at_once() -> None:
    pace, fetcher, _ = paced(0.3)
    pace.rest()
    assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]
    assert fetcher.assignments == ["mine"]


def test_a_busy_loop_fetches_when_the_tick_is_over() -> None:
    pace, fetcher, clock = paced(1.0)
    assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]  # nothing was fetched yet
    pace.rest()
    fetches, resets, look_again, invalid, resumed = fetcher._get_actions_per_node("mine")
    assert (fetches, resets, invalid, resumed) == ([], {}, False, [])
    clock.now += look_again
    assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]


@given(st.floats(-1e6, 1e6), SHARES)
def test_a_clock_that_jumps_holds_no_fetch_for_longer_than_a_tick(
    jump: float, share: float
) -> None:
    pace, fetcher, clock = paced(share)
    pace.rest()
    clock.now += jump
    clock.now += pace.left + LONGEST / 100
    assert pace.left < 2 * LONGEST
    if abs(jump) > 2 * LONGEST:
        assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]
