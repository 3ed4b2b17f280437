"""Describe a play: prompts, each model's reward and cost on each of them, and the declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from schemas import RouterDeclared

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A course of n requests over K models.

    Args:
        models: K names, in the columns' order.
        prompts: n texts.
        rewards: shape (n, K), in [0, 1].
        costs: shape (n, K), US dollars.
        available: shape (n, K): is the model in the portfolio at that request?
        declarations: (position, declaration): sent just before the request at that position; the
            first at 0.
        contexts: shape (n, d): sent instead of the prompts, which spares the encoder; None: prompts
            are sent.
        events: (position, label) of what happens on the way, for plots.
    """

    models: tuple[str, ...]
    prompts: Sequence[str]
    rewards: Matrix
    costs: Matrix
    available: Mask
    declarations: tuple[tuple[int, RouterDeclared], ...]
    contexts: Matrix | None = None
    events: tuple[tuple[int, str], ...] = ()

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def router_id(self) -> str:
        """Return the id of the scenario's router."""
        return self.declarations[0][1].router_id

    @property
    def budget_usd(self) -> float | None:
        """Return the first declaration's budget per request."""
        return self.declarations[0][1].budget_usd_per_request

    def sampled(self, count: int, *, rng: np.random.Generator) -> Scenario:
        """Return `count` of the requests in random order, before anything depends on positions.

        Raises:
            ValueError: there are fewer.
        """
        if not 1 <= count <= len(self):
            raise ValueError(f"{count} of {len(self)} requests")
        # Without replacement: a prompt that came twice would be easier the second time.
        order = rng.permutation(len(self))[:count]
        return replace(
            self,
            prompts=[self.prompts[i] for i in order],
            rewards=self.rewards[order],
            costs=self.costs[order],
            available=self.available[order],
            contexts=None if self.contexts is None else self.contexts[order],
        )
