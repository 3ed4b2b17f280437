"""What was applied since a decision, kept in few bytes."""

from __future__ import annotations

import orjson
import pytest

from router_state.since import (
    MOST_EXPLAINED,
    MOST_LETTERS,
    MOST_STEPS,
    UNKNOWN,
    Since,
    Step,
    steps_of,
)


def test_steps_of_one_kind_in_a_row_are_one_step() -> None:
    since = Since()
    since.declared(0)
    for offset in range(1_000):
        since.billed(offset)
    since.rewarded(3)
    since.rewarded(9)
    since.billed(1_004)
    assert since.text() == "d0 c999 r9 c1004"
    since.decided(1)
    since.decided(2)
    assert since.text() == "" and since.led_to(1) == "d0 c999 r9 c1004" and since.led_to(2) == ""


def test_what_waited_is_told_one_by_one() -> None:
    since = Since()
    since.billed(3, waited=True)
    since.rewarded(5, waited=True)
    since.rewarded(7, waited=True)
    assert since.text() == "C3 R5 R7"


def test_what_is_of_no_topic_is_not_noted() -> None:
    since = Since()
    since.billed(-1)
    since.rewarded(-1)
    since.declared(-1)
    since.expired(0)
    since.forgotten([])
    assert since.text() == ""


def test_sweeps_are_counted_and_forgotten_requests_are_ranges() -> None:
    since = Since()
    since.expired(2)
    since.expired(3)
    since.forgotten([7, 5, 6])
    since.forgotten([9, 8, 12])
    since.forgotten_until(20)
    since.forgotten_until(30)
    since.dropped(1.5)
    assert since.text() == "x5 g5-9,12 f30 t1.5"
    assert steps_of(since.text()) == [
        Step("x", 5),
        Step("g", seqs=((5, 9), (12, 12))),
        Step("f", 30),
        Step("t", time=1.5),
    ]


def test_the_time_of_a_declaration_comes_back_to_the_bit() -> None:
    since, now = Since(), 1_800_000_000.123457
    since.declared(3, now=now)
    assert steps_of(since.text()) == [Step("d", 3, now)]


def test_what_was_kept_goes_on_as_if_never_stopped() -> None:
    one, other = Since(), Since()
    for number in range(40):
        for since in (one, other):
            (since.billed if number // 5 % 2 else since.rewarded)(number)
            since.expired(number % 3 == 0)
            since.forgotten([number] if number % 4 == 0 else [])
            if number % 7 == 0:
                since.decided(number // 7 + 1)
        other = Since.unpack(orjson.loads(orjson.dumps(other.pack())))
        assert one == other


@pytest.mark.parametrize("what", ["turns", "requests here and there"])
def test_it_never_grows_beyond_its_bound(what: str) -> None:
    since = Since()
    for number in range(5_000):
        if what == "turns":
            since.billed(number)
            since.rewarded(number)
        else:
            since.forgotten([2 * number])
        assert len(since.text()) <= MOST_LETTERS + 32 and len(since.steps) <= MOST_STEPS
    assert since.text() == UNKNOWN and steps_of(UNKNOWN) is None
    since.declared(3)
    since.decided(1)
    assert since.led_to(1) == UNKNOWN
    since.billed(1)
    assert since.text() == "c1"


def test_the_steps_to_the_last_decisions_are_kept_and_no_more() -> None:
    since = Since()
    for seq in range(1, 101):
        if seq % 2:
            since.billed(seq)
        since.decided(seq)
    assert len(since.explained) == MOST_EXPLAINED
    first = 100 - 2 * MOST_EXPLAINED
    assert [since.led_to(seq) for seq in (first - 1, first + 1, first + 2, 99, 100)] == [
        None,
        f"c{first + 1}",
        "",
        "c99",
        "",
    ]


@pytest.mark.parametrize("text", ["z3", "c", "cx", "d1@x", "c1  r2 y"])
def test_what_is_no_step_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        steps_of(text)


def test_leases_that_were_given_back_are_told_by_the_latest_time() -> None:
    since = Since()
    for now in (5.25, 9.5, 7.0):
        since.given_back(now)
    assert steps_of(since.text()) == [Step("e", time=9.5)]
