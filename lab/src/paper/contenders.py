"""The policies that are compared: the reference library, the paper profile and the live profile,
under the same protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.data import Benchmark
from paper.reference import Reference
from paper.router import Router
from router_state.config import LIVE, PAPER, Price
from streams.priors.fitted_priors import Priors

LLAMA, MISTRAL, GEMINI = range(3)
BUDGETS: dict[str, float | None] = {"T": 3.0e-4, "M": 6.62e-4, "L": 1.87e-3, "U": None}
FINITE: dict[str, float] = {name: budget for name, budget in BUDGETS.items() if budget is not None}
COLD_ALPHA = 0.05
PHASE = 608
POLICIES = ("reference", "paper", "live")
THEIRS = ("reference", "paper")

Contender = Router | Reference


def contender(
    policy: str,
    data: Benchmark,
    *,
    budget: float | None,
    priors: Priors | None,
    seed: int = 0,
    **knobs: Any,
) -> Contender:
    """Return a policy's router over all models of a benchmark; arguments as of `contender_of`."""
    return contender_of(
        policy, data.models, data.prices, budget=budget, priors=priors, seed=seed, **knobs
    )


def contender_of(
    policy: str,
    models: Sequence[str],
    prices: Sequence[Price],
    *,
    budget: float | None,
    priors: Priors | None,
    seed: int = 0,
    **knobs: Any,
) -> Contender:
    """Return a policy's router.

    Args:
        policy: "reference", "paper" or "live".
        priors: None starts cold: the live profile with its forced pulls, the others as the paper
            does with α 0.05.
        seed: of the draw between equal scores.
        knobs: over the paper's (λ_c 0 as in every paced experiment), for "live" only `n_eff`, over
            its own.
    """
    if policy == "live":
        pulls = LIVE.onboarding_pulls if priors is None else 0
        kept = {name: value for name, value in knobs.items() if name == "n_eff"}
        return Router(
            models,
            prices,
            knobs=replace(LIVE, seed=seed, **kept),
            priors=priors,
            budget=budget,
            pulls=pulls,
        )
    cold = {"alpha": COLD_ALPHA} if priors is None else {}
    chosen = replace(PAPER, **{"lambda_c": 0.0, "seed": seed, **cold, **knobs})
    if policy == "reference":
        return Reference(models, prices, knobs=chosen, priors=priors, budget=budget)
    return Router(models, prices, knobs=chosen, priors=priors, budget=budget)
