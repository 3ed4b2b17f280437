"""Fetches leave a tick apart while the event loop is busy, and at once while it is not; feedback is
fetched together.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from schemas.topic_roles import SOURCES
from streams.faust.fetch_pace import CALM, FULL, LATEST, LONGEST, SOON, FetchPace
from streams.faust.fetching import FETCHED_TOGETHER

SHARES = st.floats(0, 1)
CHANGELOG = "changelog"
URGENT = {"requests", "routers", "pools", CHANGELOG}
ASKED, FED_BACK = [TopicPartition("requests", 0)], [TopicPartition("rewards", 1)]


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Fetcher:
    """What asks when the next fetch leaves."""

    _fetch_max_wait_ms = 200

    def __init__(self) -> None:
        self.assignments: list[Any] = []
        self.held: list[int] = []

    def _get_actions_per_node(self, assignment: object) -> Any:
        self.assignments.append(assignment)
        self.held.append(self._fetch_max_wait_ms)
        return ["fetch"], {}, 0.2, False, []


class Assignment:
    """The partitions of a worker, two of each topic."""

    tps = frozenset(
        TopicPartition(topic, number) for topic in (*SOURCES, CHANGELOG) for number in (0, 1)
    )

    def state_value(self, tp: TopicPartition) -> str:
        return f"state of {tp}"


def paced(share: float) -> tuple[FetchPace, Fetcher, Clock]:
    clock, fetcher = Clock(), Fetcher()
    pace = FetchPace(FETCHED_TOGETHER, lambda: share, clock)
    pace.of(fetcher)
    return pace, fetcher, clock


@given(SHARES)
def test_the_tick_grows_with_the_load_and_is_none_below_a_third(share: float) -> None:
    pace, _, _ = paced(share)
    pace.rest(ASKED)
    busier, _, _ = paced(min(share + 0.1, 1.0))
    busier.rest(ASKED)
    assert 0.0 <= pace.left <= busier.left <= LONGEST + 1e-9
    assert (pace.left == 0.0) == (share <= CALM) or pace.left < 1e-9
    if share >= FULL:
        assert pace.left == pytest.approx(LONGEST)


def test_a_calm_loop_fetches_at_once() -> None:
    pace, fetcher, _ = paced(0.3)
    pace.rest(ASKED)
    assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]
    assert fetcher.assignments == ["mine"]


def test_a_busy_loop_fetches_when_the_tick_is_over() -> None:
    pace, fetcher, clock = paced(1.0)
    assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]  # nothing was fetched yet
    pace.rest(ASKED)
    fetches, resets, look_again, invalid, resumed = fetcher._get_actions_per_node("mine")
    assert (fetches, resets, invalid, resumed) == ([], {}, False, [])
    clock.now += look_again
    assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]


@given(st.floats(-1e6, 1e6), SHARES)
def test_a_clock_that_jumps_holds_no_fetch_for_longer_than_a_tick(
    jump: float, share: float
) -> None:
    pace, fetcher, clock = paced(share)
    pace.rest(ASKED)
    clock.now += jump
    clock.now += pace.left + LONGEST / 100
    assert pace.left < 2 * LONGEST
    if abs(jump) > 2 * LONGEST:
        assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]


def asked_of(fetcher: Fetcher) -> set[str]:
    return {tp.topic for tp in fetcher.assignments[-1].tps}


def test_feedback_that_came_is_followed_by_fetches_of_the_rest_until_it_is_due_again() -> None:
    pace, fetcher, clock = paced(0.0)
    mine = Assignment()
    pace.rest(FED_BACK)
    _, _, look_again, _, _ = fetcher._get_actions_per_node(mine)
    assert asked_of(fetcher) == URGENT
    assert fetcher.held == [round(1000 * LATEST)]  # the broker answers when feedback is due
    assert look_again <= LATEST
    asked = fetcher.assignments[-1]
    assert {asked.state_value(tp) for tp in asked.tps} == {mine.state_value(tp) for tp in asked.tps}
    clock.now += SOON / 2
    pace.rest(ASKED)  # a request came
    fetcher._get_actions_per_node(mine)
    assert asked_of(fetcher) == URGENT
    clock.now += SOON / 2
    fetcher._get_actions_per_node(mine)
    assert asked_of(fetcher) == {*SOURCES, CHANGELOG}
    assert fetcher.held[-1] == fetcher._fetch_max_wait_ms == 200


def test_requests_alone_leave_feedback_in_each_fetch() -> None:
    pace, fetcher, _ = paced(0.0)
    pace.rest(ASKED)
    fetcher._get_actions_per_node(Assignment())
    assert asked_of(fetcher) == {*SOURCES, CHANGELOG}


def test_a_recovery_that_holds_fetches_for_less_keeps_to_that() -> None:
    pace, fetcher, _ = paced(0.0)
    fetcher._fetch_max_wait_ms = 20
    pace.rest(FED_BACK)
    fetcher._get_actions_per_node(Assignment())
    assert fetcher.held == [20] and fetcher._fetch_max_wait_ms == 20


def test_another_assignment_has_its_own_partitions() -> None:
    pace, fetcher, _ = paced(0.0)
    pace.rest(FED_BACK)
    fetcher._get_actions_per_node(Assignment())
    fewer = Assignment()
    fewer.tps = frozenset({TopicPartition("requests", 1), TopicPartition("costs", 1)})
    fetcher._get_actions_per_node(fewer)
    assert set(fetcher.assignments[-1].tps) == {TopicPartition("requests", 1)}


@given(st.floats(-1e6, 1e6).filter(lambda jump: abs(jump) > 2 * SOON))
def test_a_clock_that_jumps_leaves_no_feedback_behind(jump: float) -> None:
    pace, fetcher, clock = paced(0.0)
    pace.rest(FED_BACK)
    clock.now += jump
    fetcher._get_actions_per_node(Assignment())
    assert asked_of(fetcher) == {*SOURCES, CHANGELOG}
