"""The experiments, each a function of one seed that returns its rows: {row: {policy: value}}.

Protocol of the paper: learn online over the whole validation split, unmeasured, then the test split, still learning. Phases: the
first 608 prompts of a fixed permutation of the test split are phases 1 and 3, the next 608 phase 2; a seed shuffles each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.data import Benchmark
from benchmarks.paper.router import Outcome, Router, router_of
from router_state.config import LIVE, PAPER, Knobs, Price
from streams.priors import Priors

Rows = dict[str, dict[str, float]]
LLAMA, MISTRAL, GEMINI = range(3)
BUDGETS: dict[str, float | None] = {"T": 3.0e-4, "M": 6.62e-4, "L": 1.87e-3, "U": None}
STATIC_LAMBDA = {"T": 0.4, "M": 0.3, "L": 0.1}
PAPER_PACED = replace(PAPER, lambda_c=0.0)
PHASE = 608


@dataclass(frozen=True, slots=True)
class Data:
    """Both splits and the priors; `extended` holds the four-model splits, or None."""

    val: Benchmark
    test: Benchmark
    priors: Priors
    extended: tuple[Benchmark, Benchmark] | None = None


def profiles(seed: int) -> dict[str, Knobs]:
    """Return the profiles that are compared."""
    return {"paper": replace(PAPER_PACED, seed=seed), "live": replace(LIVE, seed=seed)}


def _variants(budget: str, seed: int) -> dict[str, Knobs]:
    """Return the paper's own baselines without a pacer: a fixed λ_c, with and without forgetting."""
    fixed = replace(PAPER, lambda_c=STATIC_LAMBDA[budget], seed=seed)
    return {"naive": replace(fixed, gamma=1.0), "forgetting": fixed}


def stationary(data: Data, seed: int) -> Rows:
    """Run E1: seven budgets between the cheapest and the dearest model's mean cost."""
    rows: Rows = {}
    means = data.val.costs.mean(axis=0)
    rng = np.random.default_rng(3000 + seed)
    burn, order = rng.permutation(len(data.val)), rng.permutation(len(data.test))
    for budget in np.geomspace(means.min(), means.max(), 7):
        for name, knobs in profiles(seed).items():
            router = router_of(data.val, knobs=knobs, priors=data.priors, budget=float(budget))
            router.run(data.val.contexts, data.val.rewards, data.val.costs, burn)
            outcome = router.run(data.test.contexts, data.test.rewards, data.test.costs, order)
            _add(rows, f"${budget:.1e} reward", name, outcome.reward)
            _add(rows, f"${budget:.1e} cost÷B", name, outcome.ratio(float(budget)))
            _add(rows, f"${budget:.1e} median λ", name, float(np.median(outcome.lambdas)))
    for k, model in enumerate(("Llama", "Mistral", "Gemini")):
        _add(rows, f"always {model} reward", "here", float(data.test.rewards[:, k].mean()))
    _add(rows, "oracle reward", "here", float(data.test.rewards.max(axis=1).mean()))
    chosen = rng.integers(3, size=len(data.test))
    _add(rows, "random reward", "here", float(data.test.rewards[np.arange(len(data.test)), chosen].mean()))
    return rows


def _phases(data: Data, offset: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the order of the burn-in and of the three phases."""
    split = np.random.default_rng(42).permutation(len(data.test))
    one, two = split[:PHASE], split[PHASE : 2 * PHASE]
    rng = np.random.default_rng(offset + seed)
    burn = rng.permutation(len(data.val))
    return burn, [rng.permutation(one), rng.permutation(two), rng.permutation(one)]


def _three_phases(
    data: Data,
    router: Router,
    burn: np.ndarray,
    orders: list[np.ndarray],
    second: Callable[[Router], tuple[np.ndarray, np.ndarray]],
    third: Callable[[Router], Any],
) -> list[Outcome]:
    test = data.test
    router.run(data.val.contexts, data.val.rewards, data.val.costs, burn)
    first = router.run(test.contexts, test.rewards, test.costs, orders[0])
    rewards, costs = second(router)
    middle = router.run(test.contexts, rewards, costs, orders[1])
    third(router)
    return [first, middle, router.run(test.contexts, test.rewards, test.costs, orders[2])]


def cost_drift(data: Data, seed: int) -> Rows:
    """Run E2: Gemini costs a 56th in phase 2, announced, and its old price again in phase 3."""
    rows: Rows = {}
    burn, orders = _phases(data, 8000, seed)
    gemini, old = data.test.models[GEMINI], data.test.prices[GEMINI]

    def cut(router: Router) -> tuple[np.ndarray, np.ndarray]:
        router.reprice(gemini, Price(0.1, 0.1))
        costs = data.test.costs.copy()
        costs[:, GEMINI] *= 0.1 / 5.625
        return data.test.rewards, costs

    for name, budget in list(BUDGETS.items())[:3]:
        for policy, knobs in {**profiles(seed), **_variants(name, seed)}.items():
            paced = policy in ("paper", "live")
            router = router_of(data.val, knobs=knobs, priors=data.priors, budget=budget if paced else None)
            phases = _three_phases(data, router, burn, orders, cut, lambda router: router.reprice(gemini, old))
            prefix, column = (name, policy) if paced else (f"{name} {policy}", "paper")
            for number, phase in enumerate(phases, 1):
                _add(rows, f"{prefix} cost÷B P{number}", column, phase.ratio(budget))
                if paced:
                    _add(rows, f"{prefix} reward P{number}", column, phase.reward)
            if paced:
                _add(rows, f"{prefix} lift P2−P1", column, phases[1].reward - phases[0].reward)
    return rows


def silent_degradation(data: Data, seed: int) -> Rows:
    """Run E3: every answer of Mistral earns 0.75 in phase 2; its price stays."""
    rows: Rows = {}
    burn, orders = _phases(data, 6000, seed)
    worse = data.test.rewards.copy()
    worse[:, MISTRAL] = 0.75
    for name, budget in list(BUDGETS.items())[:3]:
        for policy, knobs in {**profiles(seed), **_variants(name, seed)}.items():
            paced = policy in ("paper", "live")
            router = router_of(data.val, knobs=knobs, priors=data.priors, budget=budget if paced else None)
            phases = _three_phases(data, router, burn, orders, lambda router: (worse, data.test.costs), lambda router: None)
            prefix, column = (name, policy) if paced else (f"{name} {policy}", "paper")
            for number, phase in enumerate(phases, 1):
                _add(rows, f"{prefix} reward P{number}", column, phase.reward)
                if paced:
                    _add(rows, f"{prefix} cost÷B P{number}", column, phase.ratio(budget))
            if paced:
                _add(rows, f"{prefix} P3÷P1", column, phases[2].reward / phases[0].reward)
    return rows


def recovery(data: Data, seed: int) -> Rows:
    """Run G: Mistral's mean is shifted to a level in phase 2, then back; budget M."""
    rows: Rows = {}
    burn, orders = _phases(data, 7000, seed)
    budget = BUDGETS["M"]
    for level in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85):
        worse = data.test.rewards.copy()
        worse[:, MISTRAL] = np.clip(worse[:, MISTRAL] + level - worse[:, MISTRAL].mean(), 0.0, 1.0)
        for name, knobs in profiles(seed).items():
            router = router_of(data.val, knobs=knobs, priors=data.priors, budget=budget)
            phases = _three_phases(data, router, burn, orders, lambda router, w=worse: (w, data.test.costs), lambda router: None)  # type: ignore[misc]
            _add(rows, f"{level:g} P3÷P1 %", name, 100.0 * phases[2].reward / phases[0].reward)
            _add(rows, f"{level:g} reward P2", name, phases[1].reward)
    return rows


def warm_up(data: Data, seed: int) -> Rows:
    """Run C: regret to the best model of each prompt, from the first test prompt on, with priors and without (α .05)."""
    rows: Rows = {}
    test = data.test
    rng = np.random.default_rng(9000 + seed)
    order = rng.permutation(len(test))
    best = test.rewards.max(axis=1)[order]
    for name, budget in BUDGETS.items():
        for policy, knobs in profiles(seed).items():
            for prefix, priors in ((name, data.priors), (f"{name} cold", None)):
                router = (
                    router_of(test, knobs=knobs, priors=priors, budget=budget) if priors else _cold(data, policy, knobs, budget)
                )
                outcome = router.run(test.contexts, test.rewards, test.costs, order)
                _add(rows, f"{prefix} regret", policy, float((best - outcome.rewards).sum()))
                _add(rows, f"{prefix} reward", policy, outcome.reward)
                if budget is not None:
                    _add(rows, f"{prefix} cost÷B", policy, outcome.ratio(budget))
    chosen = rng.integers(3, size=len(test))
    _add(rows, "U random regret", "here", float((best - test.rewards[order, chosen]).sum()))
    return rows


def _cold(data: Data, policy: str, knobs: Knobs, budget: float | None) -> Router:
    """Return a router that knows nothing: the paper's explores with α .05, ours starts with 20 pulls of each model."""
    if policy == "live":
        return router_of(data.test, knobs=knobs, priors=None, budget=budget, pulls=knobs.onboarding_pulls)
    return router_of(data.test, knobs=replace(knobs, alpha=0.05), priors=None, budget=budget)


def prior_mismatch(data: Data, seed: int) -> Rows:
    """Run D: regret with priors that count for 10, 100 and 1,000 observations, right and with two models swapped; no budget."""
    rows: Rows = {}
    test = data.test
    order = np.random.default_rng(9000 + seed).permutation(len(test))
    best = test.rewards.max(axis=1)[order]
    swapped = Priors(data.priors.models, data.priors.A, data.priors.b[[GEMINI, MISTRAL, LLAMA]], data.priors.projection)
    for policy, knobs in profiles(seed).items():
        for kind, priors in (("full", data.priors), ("swapped", swapped)):
            for n_eff in (10, 100, 1000):
                router = router_of(test, knobs=replace(knobs, n_eff=float(n_eff)), priors=priors, budget=None)
                outcome = router.run(test.contexts, test.rewards, test.costs, order)
                _add(rows, f"{kind} n_eff {n_eff}", policy, float((best - outcome.rewards).sum()))
        outcome = _cold(data, policy, knobs, None).run(test.contexts, test.rewards, test.costs, order)
        _add(rows, "cold", policy, float((best - outcome.rewards).sum()))
    return rows


def onboarding(data: Data, seed: int) -> Rows:
    """Run E4: a fourth model joins after the validation split, nothing known of it; good, bad (reward × .5) and dear (× 10)."""
    if data.extended is None:
        return {}
    rows: Rows = {}
    val, test = data.extended
    flash = test.models[3]
    rng = np.random.default_rng(9000 + seed)
    burn, order = rng.permutation(len(val)), rng.permutation(len(test))
    for kind, quality, dear in (("good cheap", 1.0, 1.0), ("bad cheap", 0.5, 1.0), ("good dear", 1.0, 10.0)):
        rewards, costs = test.rewards.copy(), test.costs.copy()
        rewards[:, 3] *= quality
        costs[:, 3] *= dear
        listed = test.prices[3]
        price = Price(listed.input_price_per_m * dear, listed.output_price_per_m * dear)
        for name, budget in BUDGETS.items():
            for policy, knobs in profiles(seed).items():
                router = Router(val.models[:3], val.prices[:3], knobs=knobs, priors=data.priors, budget=budget)
                router.run(val.contexts, val.rewards, val.costs, burn)
                router.join(flash, price, pulls=20)
                outcome = router.run(test.contexts, rewards, costs, order)
                _add(rows, f"{kind} {name} reward", policy, outcome.reward)
                _add(rows, f"{kind} {name} cost e-4", policy, float(outcome.costs.mean() * 1e4))
                _add(rows, f"{kind} {name} Flash %", policy, 100.0 * outcome.share(3))
    return rows


def _add(rows: Rows, row: str, policy: str, value: float) -> None:
    rows.setdefault(row, {})[policy] = value


EXPERIMENTS: dict[str, Callable[[Data, int], Rows]] = {
    "E1": stationary,
    "E2": cost_drift,
    "E3": silent_degradation,
    "E4": onboarding,
    "C": warm_up,
    "D": prior_mismatch,
    "G": recovery,
}
