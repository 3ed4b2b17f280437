"""Known outcomes of models on prompts, judged offline or from a router's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ground.files.array_folder import Array
from studies.warm_start.lines import held_out


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Rewards and costs of K models on n prompts; an unknown number is NaN.

    Args:
        models: K names, in the columns' order.
        contexts: shape (n, d), last entry 1.0.
        rewards: shape (n, K), in [0, 1].
        costs: shape (n, K), US dollars.
        names: n texts that show people which prompt is meant.
        unseen: contexts for the predictions of held-out prompts, one array per fold (see
            `Chosen.unseen`), by a projection that was fitted without the fold's outcomes. None: the
            projection was not fitted to outcomes, so `contexts` serve.
    """

    models: tuple[str, ...]
    contexts: Array
    rewards: Array
    costs: Array
    names: Sequence[str]
    unseen: list[Array] | None = None

    def held_out(self, outcomes: Array) -> Array:
        """Predict outcomes, shape (n, m); each prompt is predicted by a fit to other prompts."""
        return held_out(self.contexts if self.unseen is None else self.unseen, outcomes)

    @property
    def log_costs(self) -> Array:
        """Logarithms of bills above zero: an error is then a factor, comparable for cheap and dear
        models.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.costs > 0.0, np.log(self.costs), np.nan)

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def complete(self) -> bool:
        """Tell whether every model answered every prompt, judged and billed."""
        return bool(np.isfinite(self.rewards).all() and np.isfinite(self.costs).all())
