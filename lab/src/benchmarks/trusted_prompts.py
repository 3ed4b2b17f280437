"""Trust a judge by prompt: its labels of prompts on which it is expected to contradict gold are not
learned. The service does not have this; it is played beside `on`, as `prompts`.
"""

from __future__ import annotations

import numpy as np

from benchmarks.source_worlds import Array

LEAST_PAIRS = 12
"""Pairs from which on prompts are told apart."""
AGREES, AGREES_PAIRS = 0.5, 1.0
"""Agreement on the mean prompt before any pair, and the number of pairs that it counts for."""
DIFFERS = 0.5
"""Deviation of the agreement over prompts, before any pair."""


class TrustedPrompts:
    """The agreement of judge-0 with gold, by prompt.

    Of a pair both labels are taken around the means of its model's pairs. Their product, relative
    to their deviations, is regressed on the context: where its expectation is below 0, the judge
    contradicts gold.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[str, Array, float, float]] = []
        self.coefficients: Array | None = None

    def pair(self, model: str, x: Array, judge: float, gold: float) -> None:
        """Take a pair."""
        self.pairs.append((model, x, judge, gold))
        if len(self.pairs) < LEAST_PAIRS:
            return
        models, contexts, y, r = (np.array(column) for column in zip(*self.pairs, strict=True))
        for name in set(models):
            own = models == name
            y[own], r[own] = y[own] - y[own].mean(), r[own] - r[own].mean()
        products = y * r / (np.sqrt((y @ y) * (r @ r)) / len(y) + 1e-6)
        squares = (contexts[:, :-1] ** 2).mean(0)
        features = len(squares)
        prior = np.append(squares * features / DIFFERS**2, AGREES_PAIRS)
        b = contexts.T @ products
        b[-1] += AGREES * AGREES_PAIRS
        self.coefficients = np.linalg.solve(contexts.T @ contexts + np.diag(prior), b)

    def trusts(self, x: Array) -> bool:
        """Tell whether the judge is expected to follow gold on a prompt."""
        return self.coefficients is None or float(self.coefficients @ x) >= 0.0
