"""LiteLLM's own routers, driven offline with LiteLLM's code: the adaptive router's bandit, the
complexity router, and the strategies of the lowest cost and of the lowest usage.

The adaptive router learns from signs in a conversation. Here it is told the reward instead: α grows
by the reward, β by one less the reward.
"""

from __future__ import annotations

import random
from datetime import datetime
from functools import lru_cache

import numpy as np

from benchmarks.arena import Array, Rows
from benchmarks.beside.bandits import Bandit
from benchmarks.beside.field import Field
from router_state.config import Price


def tiers(prices: tuple[Price, ...], count: int) -> list[int]:
    """Return a tier, 1 to `count`, for each model: by its rank among list prices."""
    rank = np.argsort(np.argsort([price.per_1k for price in prices], kind="stable"))
    return [1 + int(count * r // len(prices)) for r in rank]


@lru_cache
def kinds_of(prompts: tuple[str, ...]) -> Rows:
    """Return the kind that LiteLLM's classifier of the adaptive router finds for each prompt."""
    from litellm.router_strategy.adaptive_router.classifier import classify_prompt

    found = [classify_prompt(prompt).value for prompt in prompts]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


class Adaptive(Bandit):
    """LiteLLM's adaptive router: a Beta posterior for each kind of prompt and model.

    Args:
        cost_weight: weight of the list price, in [0, 1]; the rest is the quality's.
    """

    def __init__(self, seed: int, cost_weight: float, *, field: Field) -> None:
        super().__init__(0.0)
        from litellm.router_strategy.adaptive_router import bandit
        from litellm.types.router import AdaptiveRouterPreferences, RequestType

        self.bandit, self.rng, self.weight = bandit, random.Random(seed), cost_weight
        self.kinds = kinds_of(field.prompts) if field.prompts else field.kinds
        self.usd = {m: p.per_1k for m, p in zip(field.models, field.prices, strict=True)}
        prior = {
            name: bandit.initial_cell(
                AdaptiveRouterPreferences(quality_tier=tier), RequestType.GENERAL
            )
            for name, tier in zip(field.models, tiers(field.prices, 3), strict=True)
        }
        self.cells = [dict(prior) for _ in range(int(self.kinds.max()) + 1)]

    def start(self, K: int, d: int) -> None:
        """It has its cells already."""

    def choose(self, i: int, x: Array) -> int:
        picked = self.bandit.pick_best(
            self.cells[self.kinds[i]], self.usd, 1.0 - self.weight, self.weight, self.rng
        )
        return self.models.index(picked)

    def learn(self, i: int, reward: float) -> None:
        k, _ = self.chosen.pop(i)
        cells, name = self.cells[self.kinds[i]], self.models[k]
        cells[name] = self.bandit.apply_delta(cells[name], reward, 1.0 - reward)


@lru_cache
def complexity(prompts: tuple[str, ...]) -> Rows:
    """Return the tier of each prompt, 0 the simplest to 3, by LiteLLM's complexity router."""
    from litellm import Router
    from litellm.router_strategy.complexity_router.complexity_router import ComplexityRouter
    from litellm.router_strategy.complexity_router.config import ComplexityTier

    names = {tier.value: tier.value for tier in ComplexityTier}
    router = ComplexityRouter("complexity", Router(model_list=[]), {"tiers": names}, "MEDIUM")
    order = list(ComplexityTier)
    return np.array([order.index(router.classify(prompt)[0]) for prompt in prompts])


def complexity_choices(field: Field) -> Rows:
    """Return the complexity router's choices, shape (n,): of the models at four list prices."""
    ranked = np.argsort([price.per_1k for price in field.prices], kind="stable")
    at = np.linspace(0, len(ranked) - 1, 4).round().astype(int)
    chosen: Rows = ranked[at][complexity(field.prompts)]
    return chosen


class OneMinute(datetime):
    """A clock that stands, as usage is counted by the minute."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return datetime(2026, 1, 1)


def lowest_usage(field: Field) -> Rows:
    """Return the choices of LiteLLM's `usage-based-routing`, shape (n,): the model that has had the
    fewest tokens, all calls being within one minute and of one price a token."""
    from litellm.caching.caching import DualCache
    from litellm.router_strategy import lowest_tpm_rpm

    handler = lowest_tpm_rpm.LowestTPMLoggingHandler(router_cache=DualCache())
    clock, lowest_tpm_rpm.datetime = lowest_tpm_rpm.datetime, OneMinute
    tokens = 1e6 * field.costs / [price.output_price_per_m for price in field.prices]
    deployments = [{"model_info": {"id": str(k)}} for k in range(len(field.models))]
    chosen = np.zeros(len(field), dtype=np.int64)
    try:
        for i in range(len(field)):
            found = handler.get_available_deployments("all", deployments, input="")
            chosen[i] = k = int(found["model_info"]["id"])
            called = {"metadata": {"model_group": "all"}, "model_info": {"id": str(k)}}
            used = {"usage": {"total_tokens": float(tokens[i, k])}}
            handler.log_success_event({"litellm_params": called}, used, None, None)
    finally:
        lowest_tpm_rpm.datetime = clock
    return chosen


def lowest_cost(field: Field) -> int:
    """Return the model that LiteLLM's `cost-based-routing` calls, by its position."""
    import asyncio

    from litellm.caching.caching import DualCache
    from litellm.router_strategy.lowest_cost import LowestCostLoggingHandler

    deployments = [
        {
            "litellm_params": {
                "model": f"openai/{name}",
                "input_cost_per_token": price.input_price_per_m / 1e6,
                "output_cost_per_token": price.output_price_per_m / 1e6,
            },
            "model_info": {"id": name},
        }
        for name, price in zip(field.models, field.prices, strict=True)
    ]
    handler = LowestCostLoggingHandler(router_cache=DualCache())
    chosen = asyncio.run(
        handler.async_get_available_deployments(
            model_group="all",
            healthy_deployments=deployments,
            messages=[],
            input="",
            request_kwargs={},
        )
    )
    assert chosen is not None
    return field.models.index(chosen["model_info"]["id"])
