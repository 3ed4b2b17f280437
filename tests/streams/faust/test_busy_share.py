"""The share of the time in which a thread works, or waits for a core."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.faust.busy_share import LOOK_EVERY, BusyShare, worked


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

    at = 0.0
    share = BusyShare(work, lambda: at)
    for _ in range(100):
        at += LOOK_EVERY / 20
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
