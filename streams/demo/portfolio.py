"""The paper's portfolio: three models with their prices and warm priors, and the held-out prompts they were judged on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson

from schemas import RouterDeclared, decode
from streams.demo.benchmark import load_benchmark, load_rows, wheel_priors, wheel_projection
from streams.demo.scenario import Scenario
from streams.warm_start.fit import fit_costs
from streams.warm_start.observations import Observations
from streams.warm_start.priors import Priors, fields_for_wire


def known_before() -> Priors:
    """Return the priors of rewards in the installed `paretobandit` wheel, and of costs from the bills of its validation prompts.

    The validation prompts are encoded for that once; their embeddings are kept.

    Raises:
        MissingData: the wheel is not installed.
    """
    judged = load_benchmark("val")
    unknown = np.full_like(judged.rewards, np.nan)
    costs = fit_costs(Observations(judged.models, judged.contexts, unknown, judged.costs, judged.prompts))
    return replace(wheel_priors(), costs=costs)


def paper_router(priors: Priors, *, router_id: str, budget_usd: float, profile: str) -> RouterDeclared:
    """Declare the paper's router with what is known of its models.

    Raises:
        MissingData: the wheel is not installed.
    """
    listed = load_rows("val", limit=1)
    document = {
        "router_id": router_id,
        "models": {
            model: {
                "input_price_per_m": price.input_price_per_m,
                "output_price_per_m": price.output_price_per_m,
                **fields_for_wire(priors, model),
            }
            for model, price in zip(listed.models, listed.prices, strict=True)
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
    wheel_projection().save(folder)
