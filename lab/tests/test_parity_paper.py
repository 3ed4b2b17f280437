"""The benchmark of the paper runs the library as its scripts do, and the paper profile
beside it.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.data import Benchmark, load_benchmark, wheel_priors
from paper.contenders import FINITE, contender, contender_of
from paper.reference import Reference
from router_state.config import Price

DEAR = Price(3.0, 25.0)


@pytest.fixture(scope="module")
def val() -> Benchmark:
    return load_benchmark("val", encoder="static")


@pytest.mark.parametrize("budget", [None, *FINITE.values()])
@pytest.mark.parametrize("warm", [True, False])
def test_library_and_paper_profile_earn_and_pay_the_same(
    val: Benchmark, budget: float | None, warm: bool
) -> None:
    order = np.random.default_rng(4).permutation(len(val))[:600]
    brought = []
    for policy in ("reference", "paper"):
        router = contender(
            policy, val, budget=budget, priors=wheel_priors() if warm else None, seed=9
        )
        brought.append(router.run(val.contexts, val.rewards, val.costs, order))
    assert not warm or len(set(brought[0].arms.tolist())) > 1
    assert np.array_equal(brought[0].arms, brought[1].arms)
    assert np.allclose(brought[0].lambdas, brought[1].lambdas, atol=1e-9)


def test_the_library_books_a_repriced_newcomer_at_its_input_price(val: Benchmark) -> None:
    repriced, listed = (
        contender_of("reference", val.models, val.prices, budget=3e-4, priors=wheel_priors())
        for _ in range(2)
    )
    assert isinstance(repriced, Reference)
    assert isinstance(listed, Reference)
    repriced.join("flash", DEAR, pulls=1, booked=Price(3.0, 3.0))
    listed.join("flash", DEAR, pulls=1)
    assert repriced.blended["flash"] == pytest.approx(3.0)
    assert listed.blended["flash"] == pytest.approx(14.0)


def test_forced_pulls_come_first_and_are_paid_for(val: Benchmark) -> None:
    for policy in ("reference", "paper"):
        router = contender_of(policy, val.models[:2], val.prices[:2], budget=None, priors=None)
        router.join(val.models[2], val.prices[2], pulls=5)
        outcome = router.run(val.contexts, val.rewards, val.costs, range(5))
        assert outcome.arms.tolist() == [2] * 5, policy
        assert np.array_equal(outcome.costs, val.costs[:5, 2])
