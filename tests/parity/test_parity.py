"""The paper profile decides as the reference library does, decision for decision, and learns the
same numbers to 1e-9.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from router_state.config import Price

BUDGETS = (3.0e-4, 6.62e-4, 1.87e-3)
LLAMA, MISTRAL, GEMINI = (
    "meta-llama/llama-3.1-8b-instruct",
    "mistralai/mistral-large-2512",
    "google/gemini-2.5-pro",
)
LISTED = {LLAMA: Price(0.1, 0.1), MISTRAL: Price(0.5, 1.5), GEMINI: Price(1.25, 10.0)}
CUT = Price(0.1, 0.1)

MakePair = Callable[..., Any]


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_whole_benchmark_under_a_budget(pair: MakePair, prompts: Any, budget: float) -> None:
    both = pair(budget=budget)
    both.play(range(len(prompts)))
    assert both.decided == 3609
    assert len(both.chosen) >= 2


@pytest.mark.parametrize("seed", range(3))  # One under each budget, beside its own order.
def test_every_shuffle_of_the_whole_benchmark(pair: MakePair, prompts: Any, seed: int) -> None:
    both = pair(budget=BUDGETS[seed % 3], seed=seed)
    both.play(np.random.default_rng(seed).permutation(len(prompts)))


@pytest.mark.parametrize("gamma", [0.997, 1.0])
@pytest.mark.parametrize("warm", [True, False])
def test_a_fixed_price_penalty_without_a_budget(
    pair: MakePair, prompts: Any, gamma: float, warm: bool
) -> None:
    both = pair(lambda_c=0.3, gamma=gamma, warm=warm)
    both.play(range(len(prompts)))
    assert both.decided == 3609


@pytest.mark.parametrize("seed", range(5))
def test_a_cold_start_breaks_ties_with_the_same_draws(
    pair: MakePair, prompts: Any, seed: int
) -> None:
    alike = dict.fromkeys(LISTED, Price(0.5, 1.5))
    both = pair(lambda_c=0.3, gamma=1.0, alpha=0.5, seed=seed, warm=False, prices=alike)
    both.play(np.random.default_rng(seed).permutation(len(prompts))[:400])
    assert both.tied >= 2
    assert len(both.chosen) == 3


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_price_cut_and_its_end(pair: MakePair, prompts: Any, budget: float) -> None:
    both = pair(budget=budget)
    order = np.random.default_rng(42).permutation(len(prompts))
    both.play(order[:1200])
    for i in order[1200:2400]:
        if both.decided == 1200:
            both.library.update_model_pricing(GEMINI, input_cost_per_m=0.1, output_cost_per_m=0.1)
            both.declare(LISTED | {GEMINI: CUT})
        ids = both.decide(i)
        both.feed_back(i, ids, cost_factor=0.1 / 5.625 if ids[2] == GEMINI else 1.0)
    assert both.chosen.get(GEMINI, 0) > 100
    both.library.update_model_pricing(GEMINI, input_cost_per_m=1.25, output_cost_per_m=10.0)
    both.declare(LISTED)
    both.play(order[2400:])


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_model_joins_while_running(pair: MakePair, prompts: Any, budget: float) -> None:
    both = pair(budget=budget, prices={LLAMA: LISTED[LLAMA], MISTRAL: LISTED[MISTRAL]})
    both.play(range(600))
    both.library.register_model(GEMINI, input_cost_per_m=1.25, output_cost_per_m=10.0)
    both.declare(LISTED, onboarding_pulls=0)
    both.play(range(600, 2400))
    assert len(both.engine.state.arms) == 3


def test_forced_pulls_of_a_joining_model(pair: MakePair, prompts: Any) -> None:
    both = pair(budget=6.62e-4, prices={LLAMA: LISTED[LLAMA], MISTRAL: LISTED[MISTRAL]})
    both.play(range(300))
    both.library.register_model(GEMINI, input_cost_per_m=1.25, output_cost_per_m=10.0)
    both.declare(LISTED, onboarding_pulls=20)
    for i in range(300, 320):
        record = both.engine.decide(str(i), prompts.contexts[i], now=float(i))
        assert (record.model, record.reason) == (GEMINI, "onboarding")
        cost_usd, reward = float(prompts.costs[i, 2]), float(prompts.rewards[i, 2])
        both.engine.settle(str(i), cost_usd=cost_usd)
        both.engine.learn(str(i), reward=reward)
        # The library knows no forced pulls; its parts, called as `route` and `process_feedback`
        # would.
        both.library.bandit.mark_selected(GEMINI)
        both.library.bandit.update(GEMINI, prompts.contexts[i], reward, advance_time=False)
        both.library.budget_pacer.observe(cost_usd)
        both.decided += 1
    both.compare()
    both.play(range(320, 1200))


@pytest.mark.parametrize("in_flight", [10, 100])
def test_bills_and_rewards_that_come_late(pair: MakePair, prompts: Any, in_flight: int) -> None:
    both = pair(budget=6.62e-4)
    waiting: deque[tuple[int, tuple[str, str, str]]] = deque()
    rng = np.random.default_rng(in_flight)
    for i in range(1500):
        waiting.append((i, both.decide(i)))
        if len(waiting) > in_flight:
            waiting.rotate(int(rng.integers(in_flight)))
            both.feed_back(*waiting.popleft())
    both.compare()


def test_a_model_that_rested_longer_than_anything_is_remembered(
    pair: MakePair, prompts: Any
) -> None:
    both = pair(budget=1.5e-2)
    both.play(range(200))
    before = both.chosen[GEMINI]
    both.play(range(200, 1400), max_price_per_1k=1.0e-3)
    assert both.chosen[GEMINI] == before
    both.play(range(1400, 2400))
    assert both.chosen[GEMINI] > before


def test_a_price_ceiling_that_leaves_nobody_is_given_up(pair: MakePair, prompts: Any) -> None:
    both = pair(budget=3.0e-4, prices={MISTRAL: Price(4.0, 5.0), GEMINI: Price(4.5, 5.0)})
    both.play(range(800))
    assert both.reasons.get("ceiling_relaxed", 0) > 100
    assert both.reasons.get("ucb", 0) > 0
