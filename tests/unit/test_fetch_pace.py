"""Fetches leave a tick apart while the event loop is busy, and at once while it is not."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.faust.busy_share import LOOK_EVERY, BusyShare, worked
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
    assert 0.0 <= pace.left <= busier.left <= LONGEST
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
def test_a_clock_that_jumps_holds_no_fetch_for_longer_than_the_longest_tick(
    jump: float, share: float
) -> None:
    pace, fetcher, clock = paced(share)
    pace.rest()
    clock.now += jump
    assert 0.0 <= pace.left <= LONGEST
    if jump > LONGEST:
        assert fetcher._get_actions_per_node("mine")[0] == ["fetch"]


@given(st.lists(st.tuples(st.floats(-5, 60), st.floats(-5, 60)), max_size=40))
def test_a_share_is_a_share_whatever_the_clocks_say(steps: list[tuple[float, float]]) -> None:
    at, done = 0.0, 0.0
    share = BusyShare(lambda: done, lambda: at)
    for passed, took in steps:
        at, done = at + passed, done + took
        assert 0.0 <= share() <= 1.0


@pytest.mark.parametrize("busy", [0.0, 0.25, 0.9])
def test_the_share_follows_the_load(busy: float) -> None:
    at = 0.0
    share = BusyShare(lambda: busy * at, lambda: at)
    for _ in range(100):
        at += LOOK_EVERY
        share()
    assert share() == pytest.approx(busy, abs=1e-3)


def test_the_clocks_are_looked_at_no_more_than_needed() -> None:
    looks = 0

    def work() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    clock = Clock()
    share = BusyShare(work, clock)
    for _ in range(100):
        clock.now += LOOK_EVERY / 20
        share()
    assert looks <= 1 + 5


def test_what_a_thread_has_worked_grows_as_it_works() -> None:
    before, ends = worked(), time.thread_time() + 0.02
    while time.thread_time() < ends:
        pass
    assert worked() > before


@pytest.mark.parametrize("said", [None, b"", b"0 0 0\n", b"nonsense"])
def test_where_the_system_does_not_tell_the_threads_own_clock_counts(
    said: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> bytes:
        if said is None:
            raise FileNotFoundError
        return said

    monkeypatch.setattr("streams.faust.busy_share.SCHEDULED", SimpleNamespace(read_bytes=read))
    before = time.thread_time()
    assert before <= worked() <= time.thread_time()


def test_what_a_thread_waited_for_a_core_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    said = SimpleNamespace(read_bytes=lambda: b"1500000000 500000000 17\n")
    monkeypatch.setattr("streams.faust.busy_share.SCHEDULED", said)
    assert worked() == 2.0
