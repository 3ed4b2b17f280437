"""The paper's portfolio: three models with their prices and warm priors, and the held-out prompts they were judged on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson

from schemas import RouterDeclared, decode
from streams.demo.scenario import Scenario
from streams.warm_start.priors import prior_for_wire


def paper_router(*, router_id: str, budget_usd: float, profile: str) -> RouterDeclared:
    """Declare the router with the priors of the installed `paretobandit` wheel and the mean costs of its validation prompts.

    Raises:
        MissingData: the wheel is not installed.
    """
    from benchmarks.data import load_rows, wheel_priors

    priors, judged = wheel_priors(), load_rows("val")
    document = {
        "router_id": router_id,
        "models": {
            model: {
                "input_price_per_m": price.input_price_per_m,
                "output_price_per_m": price.output_price_per_m,
                "prior": prior_for_wire(priors, model),
                "expected_cost_usd": float(mean_cost_usd),
            }
            for model, price, mean_cost_usd in zip(judged.models, judged.prices, judged.costs.mean(axis=0), strict=True)
        },
        "budget_usd_per_request": budget_usd,
        "profile": profile,
    }
    if profile == "paper":
        # The paper's experiments pace by λ_t alone.
        document["lambda_c"] = 0.0
    return decode(RouterDeclared, orjson.dumps(document))


def held_out_prompts(declared: RouterDeclared) -> Scenario:
    """Return the 1,824 held-out prompts with what each model earned and cost on them.

    Raises:
        MissingData: the wheel is not installed.
    """
    from benchmarks.data import load_rows

    rows = load_rows("test")
    return Scenario(
        models=rows.models,
        prompts=rows.prompts,
        rewards=rows.rewards,
        costs=rows.costs,
        available=np.ones_like(rows.rewards, dtype=bool),
        declarations=((0, declared),),
    )


def save_projection(folder: Path) -> None:
    """Write the wheel's PCA where a worker can read it."""
    from benchmarks.data import wheel_projection

    wheel_projection().save(folder)
