"""Compute the curves of a play over its requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from commands.demo.demo_clients import Outcome
from commands.demo.demo_play import Matrix, Scenario
from commands.demo.player import Play
from drawing.page import Chart
from drawing.pareto import short
from router_state.pacing.dollar_dual import UNREACHABLE

WINDOW = 100
"""Requests that a point of a curve is the mean of."""
POINTS = 90
"""Most points of a drawn line; more of them look like a band."""
TAIL_POINTS = 8
"""Points of the router's path in the picture."""
SO_FAR, RECENT = "all so far", f"the last {WINDOW}"
"""Names of the two lines of spend."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Curves by decision, n long.

    Args:
        lambda_t: the dual variable as used.
        spend_per_budget: mean cost so far ÷ budget; empty without a budget.
        window_per_budget: the same over the last 100 decisions.
        shares: (n, K) of the last 100 decisions.
        routed: probability with which the router answered, instead of its incumbent; empty without
            an incumbent.
        reward: mean of the last 100.
        events: (position, label).
    """

    models: tuple[str, ...]
    lambda_t: Matrix
    spend_per_budget: Matrix
    window_per_budget: Matrix
    shares: Matrix
    routed: Matrix
    reward: Matrix
    events: tuple[tuple[int, str], ...]

    def charts(self) -> list[Chart]:
        """Return the charts of a page, each line with `POINTS` points or fewer."""
        n = len(self.lambda_t)
        step = -(-n // POINTS)
        # The ends of stretches, and the last decision in any case.
        kept = np.unique([*range(step - 1, n, step), n - 1])
        at = (kept + 1).tolist()
        columns = self.shares[kept].T.tolist()
        shares = dict(zip(map(short, self.models), columns, strict=True))
        # Left out where no price meets the budget: a line up to it would flatten the rest.
        prices = [one if one < UNREACHABLE else None for one in self.lambda_t[kept].tolist()]
        charts = [
            Chart(
                "Quality", at, {RECENT: self.reward[kept].tolist()}, low=0.0, high=1.0, show="fixed"
            ),
            Chart("Share of each model", at, shares, high=1.0, show="percent", models=True),
            Chart("λ_t", at, {"λ_t": prices}),
        ]
        if len(self.routed):
            routed = {"routed": self.routed[kept].tolist()}
            return [
                Chart("Share that is routed", at, routed, low=0.0, high=1.0, show="percent"),
                *charts,
            ]
        if not len(self.spend_per_budget):
            return charts
        recent = self.window_per_budget[kept].tolist()
        spent = {SO_FAR: self.spend_per_budget[kept].tolist(), RECENT: recent}
        return [Chart("Spend ÷ budget", at, spent, line=1.0), *charts]


def series_of(scenario: Scenario, play: Play) -> Series:
    """Return the curves of a play with at least one answer."""
    outcomes = play.outcomes
    chosen = np.array([scenario.models.index(outcome.decision.model) for outcome in outcomes])
    picked = (chosen[:, None] == np.arange(len(scenario.models))).astype(np.float64)
    cost = np.array([outcome.cost_usd for outcome in outcomes])
    budget = scenario.budget_usd
    routed = [outcome.decision.routed_share for outcome in outcomes]
    so_far = np.cumsum(cost) / np.arange(1, len(cost) + 1)
    return Series(
        models=scenario.models,
        lambda_t=np.array([outcome.decision.lambda_t for outcome in outcomes]),
        spend_per_budget=np.empty(0) if budget is None else so_far / budget,
        window_per_budget=np.empty(0) if budget is None else _rolling(cost) / budget,
        routed=np.array([] if None in routed else routed),
        shares=np.stack([_rolling(picked[:, k]) for k in range(picked.shape[1])], axis=1),
        reward=_rolling(np.array([outcome.reward for outcome in outcomes])),
        events=scenario.events,
    )


def path_of(outcomes: Sequence[Outcome]) -> list[tuple[float, float]]:
    """Return points of mean cost and mean reward in the order of the decisions. Each point averages
    the last quarter of the decisions before it.
    """
    n = len(outcomes)
    window = max(WINDOW, n // 4)
    cost, reward = (
        _rolling(np.array(values), window)
        for values in zip(*((one.cost_usd, one.reward) for one in outcomes), strict=True)
    )
    kept = np.unique(np.linspace(min(WINDOW, n) - 1, n - 1, TAIL_POINTS).astype(int))
    return list(zip(cost[kept].tolist(), reward[kept].tolist(), strict=True))


def _rolling(values: npt.NDArray[np.float64], window: int = WINDOW) -> Matrix:
    """Return the mean of the last values at each place; of fewer at the start."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts), dtype=np.float64)
