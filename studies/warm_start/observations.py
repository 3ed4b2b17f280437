"""Hold the known outcomes of models on prompts, judged offline or from a router's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ground.files.array_folder import Array


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """n prompts, and what each of K models earned and cost on each; NaN: nobody knows.

    Args:
        models: K names, in the columns' order.
        contexts: shape (n, d), last entry 1.0.
        rewards: shape (n, K), in [0, 1].
        costs: shape (n, K), US dollars.
        names: n texts by which people know the prompts.
    """

    models: tuple[str, ...]
    contexts: Array
    rewards: Array
    costs: Array
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def complete(self) -> bool:
        """Tell whether every model answered every prompt, judged and billed."""
        return bool(np.isfinite(self.rewards).all() and np.isfinite(self.costs).all())
