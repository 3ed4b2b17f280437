"""A full group takes as long as a turn may, and a machine with other work changes no size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.taking.next_group import AT_ONCE, FEW, FEWEST, RECENT, TURN, GroupSize

MOST = 512


def settled(each: float, *, most: int = MOST) -> GroupSize:
    """Return the size after many full groups of events that take `each` seconds."""
    size = GroupSize(most)
    for _ in range(2 * RECENT):
        size.applied(size.events, each * size.events)
    return size


@given(st.floats(1e-6, 1e-2))
def test_a_full_group_takes_a_turn(each: float) -> None:
    events = settled(each).events
    assert events in (FEWEST, MOST) or events * each <= TURN * 1.001 < (events + 2) * each


@given(
    st.floats(2e-5, 2e-4),
    st.lists(st.tuples(st.floats(1.0, 50.0), st.integers(0, RECENT - 2)), max_size=20),
)
def test_groups_that_lost_the_processor_change_no_size(
    each: float, lost: list[tuple[float, int]]
) -> None:
    # Else a partition that was unlucky would be served less than the others from then on.
    size = settled(each)
    before = size.events
    for times, more in lost:
        size.applied(before, each * before)
        for _ in range(more):
            size.applied(size.events, times * each * size.events)
        assert size.events == before


def test_few_events_tell_nothing_unless_they_are_slow() -> None:
    size = GroupSize(MOST)
    for _ in range(2 * RECENT):
        size.applied(1, TURN / 10)
    assert size.events == FEW
    for _ in range(2 * RECENT):
        size.applied(FEWEST, TURN * 2)
    assert size.events == FEWEST
    for _ in range(2 * RECENT):
        size.applied(size.events, 1e-5 * size.events)
    assert size.events == pytest.approx(TURN / 1e-5, rel=0.1)


@given(st.integers(1, MOST), st.integers(0, 3 * MOST))
def test_many_requests_have_the_turns_of_several_groups(most: int, waiting: int) -> None:
    size = GroupSize(most)
    found = size.holding(waiting)
    assert size.events <= found <= min(AT_ONCE * size.events, most)
    assert found >= min(waiting, AT_ONCE * size.events, most)
    assert found == size.events or found <= waiting


def test_groups_are_never_larger_than_the_setting() -> None:
    size = GroupSize(1)
    for seconds in (1.0, 0.0) * RECENT:
        size.applied(1, seconds)
        assert size.events == size.holding(MOST) == 1
