"""The core holds its budget and expects the right costs in drawn worlds."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.arena import play
from benchmarks.elsewhere.contenders import CONTENDERS
from benchmarks.elsewhere.drawn import drawn
from benchmarks.policies import Core, Told
from router_state.profiles import knobs_for


def test_models_that_nobody_has_called_are_tried_while_the_cheapest_known_is_too_dear() -> None:
    # 33 models; the one that all bills are of costs 1.2 budgets. It was called for good, 957
    # budgets over after 4,300 requests, while one that nobody had called costs 0.9.
    world = drawn(5108, seconds=1.0)
    for seed in (5108, 6108):
        trace = play(CONTENDERS["live"](seed), world.episode())
        assert trace.cost.mean() <= 1.15 * world.budget


@pytest.mark.parametrize("number", [8002, 8012, 8034])
def test_tokens_lower_the_error_of_expected_costs_in_drawn_worlds(number: int) -> None:
    world = drawn(number, seconds=1.0)
    errors = []
    for kind in (Core, Told):
        policy = kind("live", knobs_for("live"))
        trace = play(policy, world.episode())
        assert policy.engine is not None
        records = policy.engine.records
        expected = np.array([records[str(i)].expected_cost_usd for i in range(len(world))])
        errors.append(np.abs(expected - trace.cost)[300:].sum() / trace.cost[300:].sum())
    assert errors[1] < 0.8 * errors[0]
