"""The policies that play the worlds: the default profile, the paper's, and alternatives with and
without the dual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.arena import Policy
from benchmarks.policies import POLICIES, VARIANTS, Core, Told, core
from router_state.config import RouterConfig


class Unpaced(Core):
    """The core without a budget: costs are counted, and nothing else."""

    def declare(self, config: RouterConfig, *, at: int) -> None:
        super().declare(replace(config, budget_usd_per_request=None), at=at)


CONTENDERS: dict[str, Callable[[int], Policy]] = {
    **{name: POLICIES[name] for name in ("live", "paper", "thompson", "ε-greedy")},
    "told": core("live", {}, Told),
    "apart": VARIANTS["apart"],
    # Li et al. 2010 with α = 1 and ridge 1: every model by itself, nothing forgotten, costs
    # unknown.
    "LinUCB": core(
        "paper", {"alpha": 1.0, "gamma": 1.0, "lambda_c": 0.0, "onboarding_pulls": 0}, Unpaced
    ),
}
