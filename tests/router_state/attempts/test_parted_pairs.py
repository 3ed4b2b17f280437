"""The change that is told is that of the plain test of every block edge."""

from __future__ import annotations

import math
from copy import deepcopy
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from router_state.attempts.verdict_pairs import BLOCK, LEAST_CHANGE, Change, Pairs, Sums

ALPHA = 0.05


def plainly(pairs: Pairs) -> Change | None:
    """Return the change by the intervals at every edge, without leaving any out."""
    for back in range(len(pairs.blocks), 0, -1):
        before, later = Sums(), Sums()
        for sums in (pairs.older, *pairs.blocks[:-back]):
            before.join(sums)
        for sums in pairs.blocks[-back:]:
            later.join(sums)
        if before.n < BLOCK:
            continue
        share = ALPHA * 6.0 / (math.pi * (pairs.first + len(pairs.blocks) - back)) ** 2
        now, then = later.mean(share / 2.0), before.mean(share / 2.0)
        clear = max(now.low - then.high, then.low - now.high) > 0.0
        if clear and abs(now.value - then.value) >= LEAST_CHANGE:
            return Change(then, now)
    return None


@given(
    st.lists(
        st.tuples(st.floats(-1.0, 1.0), st.floats(0.0, 0.5), st.integers(1, 120)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 2**32),
)
def test_a_change_is_that_of_the_test_of_every_edge(
    stages: list[tuple[float, float, int]], seed: int
) -> None:
    rng, pairs = Random(seed), Pairs(0.0)
    for mean, spread, count in stages:
        for _ in range(count):
            pairs.add(mean + spread * rng.uniform(-1.0, 1.0), passes=True)
            expected = plainly(deepcopy(pairs))
            assert pairs.parted(ALPHA) == expected
