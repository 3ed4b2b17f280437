"""Blocks of pairs count by the probability that the judge has not changed since."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from router_state.sources.pair_sums import PARTS
from router_state.sources.parting import MOST_BLOCKS, Block, Cell
from router_state.sources.unchanged_judge import unchanged_since


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    """Draw blocks of pairs, some of which were taken back."""
    differences = st.lists(st.integers(-PARTS, PARTS), max_size=4)
    drawn = draw(st.lists(differences, min_size=1, max_size=MOST_BLOCKS))
    return [Block(len(d), sum(d), sum(one * one for one in d)) for d in drawn]


@given(blocks())
def test_an_older_block_never_counts_more_and_the_last_one_counts_in_full(
    drawn: list[Block],
) -> None:
    found = unchanged_since(drawn)
    assert len(found) == len(drawn)
    assert found == sorted(found)
    assert found[0] >= 0.0 and abs(found[-1] - 1.0) < 1e-12


def cell_of(differences: np.ndarray) -> Cell:
    cell = Cell.empty(0)
    for number, d in enumerate(differences):
        gold = 0.5 + 0.01 * (number % 7)
        cell.add(round(PARTS * (gold + float(d))), round(PARTS * gold), float(number))
    return cell


def test_a_judge_that_has_changed_is_off_as_it_is_now() -> None:
    for seed in range(20):
        numbers = np.random.default_rng(seed)
        honest = 0.12 * numbers.standard_normal(100)
        after = 0.3 + 0.12 * numbers.standard_normal(14)
        n, judge, gold = cell_of(np.concatenate([honest, after])).last_means()
        assert n < 40.0
        assert abs(judge - gold - after.mean()) < 0.08


def test_all_pairs_of_a_judge_that_does_not_change_count() -> None:
    counted = []
    for seed in range(20):
        numbers = np.random.default_rng(seed)
        differences = 0.1 + 0.12 * numbers.standard_normal(120)
        n, judge, gold = cell_of(differences).last_means()
        counted.append(n)
        assert abs(judge - gold - 0.1) < 0.06
    assert np.median(counted) > 90.0
