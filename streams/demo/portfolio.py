"""The paper's portfolio: three models with their prices and warm priors, and the held-out prompts they were judged on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import orjson

from schemas import RouterDeclared, decode
from streams.demo.scenario import Scenario
from streams.priors import prior_for_wire

HELD_OUT = "data/examples/test_holdout.jsonl"
PRICES = {
    "meta-llama/llama-3.1-8b-instruct": (0.1, 0.1),
    "mistralai/mistral-large-2512": (0.5, 1.5),
    "google/gemini-2.5-pro": (1.25, 10.0),
}
"""US dollars per million input and output tokens."""


def paper_router(*, router_id: str, budget_usd: float, profile: str) -> RouterDeclared:
    """Declare the router with the priors of the installed `paretobandit` wheel, converted at run time.

    Raises:
        MissingData: the wheel is not installed.
    """
    from benchmarks.data import wheel_priors

    priors = wheel_priors()
    document = {
        "router_id": router_id,
        "models": {
            model: {"input_price_per_m": price[0], "output_price_per_m": price[1], "prior": prior_for_wire(priors, model)}
            for model, price in PRICES.items()
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
    from benchmarks.data import wheel_folder

    lines = (wheel_folder() / HELD_OUT).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    models = tuple(PRICES)
    rewards, costs = (np.array([[row["arms"][model][what] for model in models] for row in rows]) for what in ("reward", "cost"))
    return Scenario(
        models=models,
        prompts=[row["prompt"] for row in rows],
        rewards=rewards,
        costs=costs,
        available=np.ones_like(rewards, dtype=bool),
        declarations=((0, declared),),
    )


def save_projection(folder: Path) -> None:
    """Write the wheel's PCA where a worker can read it."""
    from benchmarks.data import wheel_projection

    wheel_projection().save(folder)
