"""The outcome of a stretch of requests, and the sheet that an experiment fills with numbers and
curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

Rows = dict[str, dict[str, float]]
Curves = dict[str, dict[str, list[float]]]
STEP, WINDOW = 20, 50


@dataclass(slots=True)
class Outcome:
    """Per request its arm, reward, cost in dollars, and the λ_t it was decided with."""

    arms: np.ndarray
    rewards: np.ndarray
    costs: np.ndarray
    lambdas: np.ndarray

    @property
    def reward(self) -> float:
        return float(self.rewards.mean())

    def ratio(self, budget: float | None) -> float:
        """Return mean cost ÷ budget."""
        return float(self.costs.mean() / budget) if budget else float("nan")

    def share(self, k: int, *, last: int = 0) -> float:
        """Return how often arm k was called, in per cent, among the last so many requests (0:
        all).
        """
        return 100.0 * float((self.arms[-last:] == k).mean())


def joined(parts: Sequence[Outcome]) -> Outcome:
    """Return stretches as one."""
    return Outcome(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Outcome.__slots__)
    )


def checkpoints(n: int, *, every: int = STEP) -> list[int]:
    """Return the first request, every so many, and the last."""
    return sorted({1, *range(every, n + 1, every), n})


def moving(values: np.ndarray, *, every: int = STEP, window: int = WINDOW) -> list[float]:
    """Return the mean over the last `window` values at each checkpoint."""
    total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return [
        float((total[at] - total[max(0, at - window)]) / min(window, at))
        for at in checkpoints(len(values), every=every)
    ]


def running(values: np.ndarray, *, every: int = STEP) -> list[float]:
    """Return the mean of all values so far at each checkpoint."""
    total = np.cumsum(values, dtype=np.float64)
    return [float(total[at - 1] / at) for at in checkpoints(len(values), every=every)]


@dataclass(slots=True)
class Sheet:
    """Numbers {row: {policy: value}} and curves {name: {policy: values}} of one seed."""

    rows: Rows = field(default_factory=dict)
    curves: Curves = field(default_factory=dict)

    def put(self, row: str, policy: str, value: float) -> None:
        """Write a number."""
        self.rows.setdefault(row, {})[policy] = float(value)

    def draw(self, name: str, policy: str, values: Sequence[float]) -> None:
        """Write a curve."""
        self.curves.setdefault(name, {})[policy] = [float(value) for value in values]

    def curve(self, name: str, policy: str, value: float) -> None:
        """Add a point to a curve."""
        self.curves.setdefault(name, {}).setdefault(policy, []).append(float(value))
