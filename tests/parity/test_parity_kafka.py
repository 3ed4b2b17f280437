"""The reference library's decisions again, through a real worker on a real broker, one request in
flight.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.data import wheel_priors
from streams.priors.fitted_priors import prior_for_wire
from tests.integration.service import RunningService, cost, reward, running_service
from tests.parity.conftest import MODELS, PRICES, TOLERANCE, Pair, Prompts

HOME = "paper"
BUDGET = 3.0e-4
REQUESTS = 120


def declaration() -> dict[str, object]:
    """Return the paper's three models with their priors, under the paper's profile."""
    priors = wheel_priors()
    models = {
        name: {
            "input_price_per_m": PRICES[name].input_price_per_m,
            "output_price_per_m": PRICES[name].output_price_per_m,
            "prior": prior_for_wire(priors, name),
        }
        for name in MODELS
    }
    return {
        "router_id": HOME,
        "models": models,
        "profile": "paper",
        "lambda_c": 0.0,
        "budget_usd_per_request": BUDGET,
    }


def settled(service: RunningService, requests: int) -> bool:
    """Tell whether so many bills and rewards are in force."""
    shown = service.lambda_of(HOME)
    return bool(shown) and shown["settled"] == requests == shown["rewards_applied"]


async def play(service: RunningService, pair: Pair, order: list[int]) -> None:
    """Decide each prompt on both sides; its bill and reward are in force before the next one."""
    for done, i in enumerate(order, start=1):
        theirs, ours, model = pair.decide(i)
        x = pair.prompts.contexts[i].tolist()
        await service.send("requests", {"router_id": HOME, "request_id": ours, "context": x})
        await service.until(partial(service.route, ours), "a decision")
        route = service.route(ours)
        assert route is not None and route["model"] == model
        assert abs(route["lambda_t"] - pair.library.budget_pacer.lambda_t) <= TOLERANCE
        pair.feed_back(i, (theirs, ours, model))
        k = MODELS.index(model)
        await service.send("costs", cost(HOME, ours, float(pair.prompts.costs[i, k])))
        await service.send("rewards", reward(HOME, ours, float(pair.prompts.rewards[i, k])))
        await service.until(partial(settled, service, done), "its bill and reward")


async def test_the_service_decides_as_the_library_does(
    kafka: str, tmp_path: Path, pair: Callable[..., Pair], prompts: Prompts
) -> None:
    order = np.random.default_rng(5).permutation(len(prompts))[:REQUESTS].tolist()
    async with running_service(kafka, tmp_path) as service:
        await service.ready(service.worker())
        await service.send("routers", declaration())
        both = pair(budget=BUDGET)
        await play(service, both, order)
        both.compare()
        learned = (await service.engine(HOME)).state
        for name in MODELS:
            k = learned.arms.row[name]
            assert (
                np.abs(learned.arms[k].rewards.theta - both.library.bandit.theta[name]).max()
                <= TOLERANCE
            )
