"""What is told of prompts that a model has hardly had."""

from __future__ import annotations

import numpy as np
from router_state.change.novelty import Novelty


def used_to(distances: list[float]) -> Novelty:
    novelty = Novelty()
    for distance in distances:
        novelty.observe(distance)
    return novelty


def test_prompts_as_ever_are_hardly_ever_new_whatever_their_distribution() -> None:
    rng = np.random.default_rng(0)
    for draw in (rng.chisquare(1, 4000), rng.chisquare(25, 4000), rng.standard_t(4, 4000) ** 2):
        novelty, new = Novelty(), 0
        for n, distance in enumerate(draw.tolist()):
            novelty.observe(distance)
            new += n > 100 and novelty.novel
        assert new < 0.06 * 4000


def test_a_few_of_another_kind_are_new_until_they_are_usual() -> None:
    rng = np.random.default_rng(1)
    usual, others = rng.chisquare(25, 1000).tolist(), (4.0 * rng.chisquare(25, 600)).tolist()
    assert used_to(usual + others[:4]).novel
    assert used_to(usual + others[:30]).novel
    assert not used_to(usual + others).novel


def test_prompts_that_are_all_alike_are_not_new() -> None:
    assert not used_to([1.0] * 500).novel
    assert not used_to([0.0] * 500).novel
    assert used_to([1.0] * 500 + [2.0] * 3).novel
