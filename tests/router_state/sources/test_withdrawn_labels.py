"""All labels of a source are withdrawn: the router goes on as if none had come.

Not undone, as time has passed: which block a later pair stands in, an alert that was told, and the
records of the requests, which keep that a label was withdrawn. Sums of floats differ in their last
digits. Nor is a judge that was set aside counted again at once, and the noise of a label stays as
gold said then: the requests here are too few for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.played import Played
from router_state.sources.pair_sums import Moments
from router_state.state import invariants
from tests.router_state.sources.test_calibration import (
    JUDGES,
    ask,
    config,
    label,
    learned,
    sources,
    thawed,
)

PEOPLE = ("human", "human:anna", "human:an: na")
NAMES = (*PEOPLE, *JUDGES, "user", "humane", "judge-v2:b")
REQUESTS = 6
drawn = st.lists(
    st.tuples(
        st.integers(0, REQUESTS - 1),
        st.sampled_from(NAMES),
        st.none() | st.sampled_from([0, 5, 10]),
    ),
    max_size=40,
)


def engine(mode: str) -> Played:
    return Played.start(config(gamma=1.0, calibrate=mode))


def counted(one: Played) -> dict[tuple[str, str], Moments]:
    """Return the pairs by source and model; cells without a pair are as none."""
    return {of: cell.all for of, cell in sources(one).pairs.cells.items() if cell.all.n}


@pytest.mark.parametrize("mode", ["off", "offset", "on"])
@given(events=drawn, gone=st.sampled_from(NAMES), restarts=st.booleans())
def test_a_source_whose_labels_are_all_withdrawn_never_was(
    mode: str, events: list[Any], gone: str, restarts: bool
) -> None:
    one, never = engine(mode), engine(mode)
    for number in range(REQUESTS):
        for router in (one, never):
            ask(router, f"r{number}", ("small", "large")[number % 2], (float(number), 1.0))
    for revision, (number, source, tenths) in enumerate(events, 1):
        reward = None if tenths is None else tenths / 10.0
        label(one, f"r{number}", reward, source, revision)
        if source != gone:
            label(never, f"r{number}", reward, source, revision)
    if restarts:
        one = thawed(one)
    for number in sorted({number for number, source, _ in events if source == gone}):
        label(one, f"r{number}", None, gone, 1_000)
    for router in (one, never):
        invariants.check(router.state, router.records)
    assert counted(one) == counted(never)
    for found, wanted in zip(learned(one), learned(never), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    for name, record in one.records.items():
        said, other = record.label, never.records[name].label
        assert (said and said.reward) == pytest.approx(other and other.reward)


@given(st.permutations([("human:anna", 0.1), ("human:an: na", 0.7), ("judge-v2", 0.3)]))
def test_two_people_and_a_judge_count_alike_in_any_order(order: list[tuple[str, float]]) -> None:
    one = engine("on")
    ask(one, "a", "large", (0.5, 1.0))
    for source, reward in order:
        label(one, "a", reward, source)
    found = one.records["a"].label
    assert found is not None and found.reward == pytest.approx(0.4)
    pairs = counted(one)["judge-v2", "large"]
    assert (pairs.n, pairs.y, pairs.r) == (1, 3_000, 4_000)
