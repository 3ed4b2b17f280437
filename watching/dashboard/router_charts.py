"""The charts of one router's page: its bins as curves, shares and the path of its picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ground.json_values import Document
from watching.dashboard.bins import COLUMN, FIXED, Bins, moving

LEAST = {"ratio": 50, "reward": 30, "share": 100}
"""Fewest events in the mean of a chart's point, so that it does not only show chance."""


WEEK_SECONDS = 7 * 86_400.0
"""Seconds of the router's path in the picture."""
TAIL_POINTS = 8
"""Points of that path, at least; twice as many at most."""


@dataclass(slots=True)
class Charts:
    """The bins of a router, and the models that they count.

    Attributes:
        bins: numbers by time; the last columns count the decisions of each model.
        models: those models, in the order of their first decisions.
    """

    bins: Bins = field(default_factory=Bins)
    models: list[str] = field(default_factory=list)

    def decide(self, model: str, *, at: float) -> None:
        """Count a decision for a model."""
        if model not in self.models:
            self.models.append(model)
        self.bins.add(at, "decided", 1.0)
        self.bins.count(at, self.models.index(model))

    def path(self) -> list[tuple[float, float]]:
        """Return mean bill and mean label over the last week, the oldest first."""
        _, last, rows = self.bins.table()
        week = rows[last > last.max(initial=0.0) - WEEK_SECONDS].astype(np.float64)
        column = {name: week[:, at] for name, at in COLUMN.items()}
        bills, labels = column["settled"], column["rewarded"]
        # A quarter of the events for each point: fewer would show chance, more would hide the path.
        costs = moving(column["spend_usd"], bills, max(LEAST["ratio"], int(bills.sum() / 4)))
        earned = moving(column["reward"], labels, max(LEAST["reward"], int(labels.sum() / 4)))
        enough = (bills.cumsum() >= LEAST["ratio"]) & (labels.cumsum() >= LEAST["reward"])
        known = [
            (cost, quality)
            for cost, quality, shown in zip(costs, earned, enough, strict=True)
            if shown and cost is not None and quality is not None
        ]
        return known[:: max(1, len(known) // TAIL_POINTS)]

    def shares(self) -> dict[str, float]:
        """Return each model's share of the last decisions: of the last hundred or more, or of all
        if there are fewer."""
        if not self.models:
            return {}
        counts = self.bins.table().rows[:, FIXED:].astype(np.float64)
        decided = counts.sum(axis=1)
        newest_first = np.cumsum(decided[::-1])
        # The fewest last bins that hold a hundred decisions, as shares of three decisions would
        # jump.
        enough = int(np.searchsorted(newest_first, LEAST["share"])) + 1
        recent = counts[-enough:].sum(axis=0)
        total = recent.sum()
        return {
            model: float(recent[at] / total) if total else 0.0
            for at, model in enumerate(self.models)
            if at < len(recent)
        }

    def series(self) -> Document:
        """Return the charts: λ_t as at the last event of each bin, all other series as means over
        some events.
        """
        first, last, rows = self.bins.table()
        table = rows.astype(np.float64)
        column = {name: table[:, at] for name, at in COLUMN.items()}
        spend = moving(column["spend_usd"], column["settled"], LEAST["ratio"])
        budgets, lambdas = column["budget_usd"], _filled(column["lambda_t"])
        counts = table[:, FIXED:]
        decided = counts.sum(axis=1)
        return {
            "begins": first.tolist(),
            "at": last.tolist(),
            "requests": column["decided"].cumsum().tolist(),
            "lambda": lambdas,
            "ratio": [
                None if mean is None or not budget else mean / budget
                for mean, budget in zip(spend, _filled(budgets), strict=True)
            ],
            "reward": moving(column["reward"], column["rewarded"], LEAST["reward"]),
            "shares": {
                model: moving(counts[:, at], decided, LEAST["share"])
                for at, model in enumerate(self.models)
                if at < counts.shape[1]
            },
        }


def _filled(values: Iterable[float]) -> list[float | None]:
    """Return values with gaps filled by the value before."""
    found: list[float | None] = []
    for value in values:
        found.append((found[-1] if found else None) if np.isnan(value) else float(value))
    return found
