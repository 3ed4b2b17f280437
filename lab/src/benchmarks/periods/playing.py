"""Play a history by the router with a month's budget, and by alternatives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmarks.arena import Array
from benchmarks.periods.histories import History
from benchmarks.played import Played
from router_state.config import RouterConfig
from router_state.periods.spending import PeriodBudget, Spending
from router_state.profiles import knobs_for
from studies.warm_start.lines import held_out, within_budget

Side = Literal["month", "mean traffic", "known traffic", "even days"]
SIDES: tuple[Side, ...] = ("month", "mean traffic", "even days", "known traffic")
DAY = 86_400.0
EXPIRE_EVERY = 64


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The month's rewards and costs, shape (n,), and dollars per request that were aimed at; a
    refused request earns and costs nothing."""

    reward: Array
    cost: Array
    refused: int = 0


def play(history: History, side: Side, *, seed: int = 0) -> Outcome:
    """Return what one side did in the month."""
    made, start = history.made, history.month.start
    n, column = len(history.times), {name: k for k, name in enumerate(made.models)}
    engine = Played.start(_learning(history, seed))
    reward, cost = np.zeros(n), np.zeros(n)
    due = np.arange(n) + 1.0 + history.delay
    order, arrived = np.argsort(due, kind="stable"), 0
    days = _Days(history) if side == "even days" else None
    refused = 0
    for i, now in enumerate(history.times.tolist()):
        while arrived < n and due[order[arrived]] <= i:
            j = str(order[arrived])
            if j in engine.records:
                engine.settle(j, cost_usd=float(cost[order[arrived]]))
                engine.learn(
                    j, reward=float(made.rewards[order[arrived], column[engine.records[j].model]])
                )
            arrived += 1
        if i == made.warm:
            engine.configure(_declared(history, side, seed), now=now)
        if i % EXPIRE_EVERY == 0:
            engine.forget(before=now - 90 * DAY)
        if days is not None and i >= start and not days.may(now):
            refused += 1
            continue
        record = engine.decide(str(i), made.contexts[i], now=now)
        k = column[record.model]
        reward[i], cost[i] = made.quality[i, k], made.costs[i, k]
        if days is not None:
            days.spend(now, float(cost[i]))
    return Outcome(reward[start:], cost[start:], refused)


class _Days:
    """An even share of the month's budget for each day; what is spent is refused."""

    def __init__(self, history: History) -> None:
        self.begin = float(history.times[history.month.start]) // DAY
        self.share = history.usd / (float(history.times[-1]) // DAY - self.begin + 1.0)
        self.spent: dict[float, float] = {}

    def may(self, now: float) -> bool:
        return self.spent.get(now // DAY, 0.0) < self.share

    def spend(self, now: float, usd: float) -> None:
        self.spent[now // DAY] = self.spent.get(now // DAY, 0.0) + usd


def _learning(history: History, seed: int) -> RouterConfig:
    config = replace(
        history.made.config, knobs=knobs_for("live", {"seed": seed, "commitment_ttl_seconds": 1e9})
    )
    return replace(config, budget_usd_per_request=history.made.level)


def _declared(history: History, side: Side, seed: int) -> RouterConfig:
    config = _learning(history, seed)
    if side == "month":
        spending = Spending((PeriodBudget(history.usd, "month"),))
        return replace(config, budget_usd_per_request=None, capabilities={"spending": spending})
    if side == "known traffic":
        return config
    return replace(config, budget_usd_per_request=history.usd / history.usual)


def hindsight(history: History) -> Outcome:
    """Return the outcome of a policy with linear rewards and costs, cross-fitted on the month, at
    the best price of a dollar."""
    made, month = history.made, history.month
    costs = made.costs[month]
    scale = np.maximum(costs.mean(0), 1e-12)
    rewards = held_out(made.contexts[month], made.rewards[month])
    expected = np.maximum(held_out(made.contexts[month], costs / scale), 0.05) * scale
    chosen = within_budget(rewards, expected, costs, history.usd / len(costs))
    rows = np.arange(len(costs))
    return Outcome(made.quality[month][rows, chosen], costs[rows, chosen])
