"""Judged prompts that every entrant plays in the same order, with the same delays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arena import Array, Episode, Rows, declared
from router_state.config import LIVE, Price, Prior
from studies.warm_start.fit import fit_priors
from studies.warm_start.observations import Observations


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Rewards and costs of K models on each of n prompts.

    Args:
        name: short, for the command line; title: for tables.
        models, prices: K names, and their list prices.
        contexts: shape (n, d), last entry 1.0.
        kinds: shape (n,), the kind of each prompt, 0..T-1; for routers that know kinds only.
        rewards, costs: shape (n, K); costs in dollars.
        late: requests that are decided before a bill comes, and before a reward comes.
        prompts: the prompts' texts, where there are any.
        before: so many prompts lead the way: they are played without a budget and not measured.
    """

    name: str
    title: str
    models: tuple[str, ...]
    prices: tuple[Price, ...]
    contexts: Array
    kinds: Rows
    rewards: Array
    costs: Array
    late: tuple[float, float] = (0.0, 0.0)
    prompts: tuple[str, ...] = ()
    before: int = 0

    def __len__(self) -> int:
        return len(self.contexts)

    def take(self, rows: Rows) -> Field:
        """Return the prompts of these rows, in this order."""
        return replace(
            self,
            contexts=self.contexts[rows],
            kinds=self.kinds[rows],
            rewards=self.rewards[rows],
            costs=self.costs[rows],
            prompts=tuple(self.prompts[row] for row in rows) if self.prompts else (),
        )

    def ordered(self, seed: int) -> Field:
        """Return all prompts in the order of a seed; those that lead the way stay in front."""
        rng = np.random.default_rng([38, seed])
        first, rest = rng.permutation(self.before), rng.permutation(len(self) - self.before)
        return self.take(np.concatenate([first, rest + self.before]).astype(np.int64))

    def half(self) -> Field:
        """Return a random half, always the same one: what rivals' settings are chosen on."""
        rows = np.random.default_rng(38).permutation(len(self))[: len(self) // 2]
        return replace(self.take(np.sort(rows)), before=int((rows < self.before).sum()))

    @property
    def mean_costs(self) -> Array:
        """Return the mean cost of each model over the measured prompts, shape (K,)."""
        means: Array = self.costs[self.before :].mean(0)
        return means

    def budgets(self, count: int) -> tuple[float, ...]:
        """Return budgets in dollars per request, from a little above the cheapest model's mean cost
        to the dearest one's, at equal ratios."""
        means = self.mean_costs
        return tuple(np.geomspace(1.2 * means.min(), means.max(), count).tolist())

    def prices_of_a_dollar(self, count: int) -> tuple[float, ...]:
        """Return prices of a dollar in reward: 0, then from where the dearest model's mean cost is
        worth 0.02 to where the cheapest one's is worth 0.5."""
        means = self.mean_costs
        return (0.0, *np.geomspace(0.02 / means.max(), 0.5 / means.min(), count - 1).tolist())

    def priors(self) -> dict[str, Prior]:
        """Return the priors that `pbstream fit` makes of all outcomes; they count for so many
        prompts, as shipped at most."""
        seen = Observations(self.models, self.contexts, self.rewards, self.costs, self.prompts)
        fitted = fit_priors(seen, projection="", ridge=1.0)
        count = min(LIVE.n_eff, float(len(self)))
        return {name: replace(fitted.of(name), n_eff=count) for name in self.models}

    def episode(self, budget: float | None, priors: Mapping[str, Prior] | None = None) -> Episode:
        """Return the prompts as an arena plays them, declared with these priors or none."""
        n, (bill, reward) = len(self), self.late
        prices = dict(zip(self.models, self.prices, strict=True))
        config = declared(prices, budget, self.contexts.shape[1], priors)
        in_force = {self.before: config}
        if self.before:
            in_force[0] = replace(config, budget_usd_per_request=None)
        return Episode(
            self.models,
            self.contexts,
            self.rewards,
            self.costs,
            in_force,
            np.full(n, bill),
            np.full(n, reward),
            {},
        )
