"""Groups grow while they are quick, and shrink where several in a row are slow."""

from __future__ import annotations

from agents.taking.next_group import (
    FEW,
    FEWEST,
    GROW_BELOW_SECONDS,
    SHRINK_ABOVE_SECONDS,
    SLOW_IN_A_ROW,
    GroupSize,
)


def test_groups_shrink_only_where_several_in_a_row_are_slow() -> None:
    size, slow, quick = GroupSize(1_000), 2 * SHRINK_ABOVE_SECONDS, GROW_BELOW_SECONDS / 2
    for _ in range(10):  # one that lost the processor, now and then
        for _ in range(SLOW_IN_A_ROW - 1):
            size.applied(FEW, slow)
        size.applied(FEW, SHRINK_ABOVE_SECONDS)
    assert size.events == FEW
    for _ in range(SLOW_IN_A_ROW):
        size.applied(FEW, slow)
    assert size.events == FEW // 2
    for _ in range(100):
        size.applied(1, slow)
    assert size.events == FEWEST
    size.applied(FEWEST - 1, quick)  # not a full one: it says nothing of a larger one
    assert size.events == FEWEST
    for _ in range(100):
        size.applied(size.events, quick)
    assert size.events == 1_000


def test_groups_are_never_larger_than_the_setting() -> None:
    size = GroupSize(1)
    for _ in range(100):
        size.applied(1, 1.0)
    size.applied(1, 0.0)
    assert size.events == 1
