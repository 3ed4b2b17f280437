"""The paper's portfolio: three models with their prices and warm priors, and the held-out prompts
they were judged on.
"""

from __future__ import annotations

import numpy as np
import orjson

from commands.demo.benchmark import load_benchmark, load_rows, projection_for
from commands.demo.demo_play import Scenario
from schemas import RouterDeclared, decode
from streams.encoder.projection import Projection
from streams.priors.fitted_priors import Priors, fields_for_wire
from studies.warm_start.fit import fit_priors
from studies.warm_start.observations import Observations


def known_before(encoder: str = "static", projection: Projection | None = None) -> Priors:
    """Return priors of rewards and costs, fitted on the validation prompts of the `paretobandit`
    wheel.

    The wheel's own priors do not fit: they are in the coordinates of MiniLM, and the demo's worker
    encodes with the shipped table of tokens.

    Args:
        encoder, projection: the encoder and the projection of the contexts, see `load_benchmark`.

    Raises:
        MissingData: the wheel is not installed.
    """
    # Fitted on the validation prompts: the prompts that are played must be unseen.
    projection = projection or projection_for(encoder)
    judged = load_benchmark("val", encoder=encoder, projection=projection)
    observed = Observations(
        judged.models, judged.contexts, judged.rewards, judged.costs, judged.prompts
    )
    return fit_priors(observed, projection=projection.checksum, ridge=1.0)


def paper_router(
    priors: Priors, *, router_id: str, budget_usd: float, profile: str
) -> RouterDeclared:
    """Declare the paper's router with priors for its models.

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
