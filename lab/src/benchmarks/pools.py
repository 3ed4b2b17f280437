"""Eight routers on three workers share one budget, and one worker is away in the middle.

What is spent, and how much of what one price of a dollar for all traffic gains do leases gain?

uv run python -m benchmarks.pools [--quick]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from benchmarks.arena import Array, Rows
from benchmarks.played import Played
from benchmarks.protocol import declaration, prompts
from benchmarks.report import EVERYTHING, Choice, command, print_figures, print_table
from router_state.periods.holdings import Granted
from router_state.periods.period_budgets import Periods
from router_state.periods.spending import PeriodBudget, Spending
from router_state.pools.pool import Pool
from router_state.pools.pool_config import PoolConfig
from router_state.profiles import knobs_for
from studies.warm_start.lines import held_out, within_budget

ROUTERS, WORKERS = 8, 3
DAY = 86_400.0
BEGIN = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
EVERY = 60.0
"""Seconds between two exchanges; workers have one a second."""
EXCHANGES = 3
"""Reports and grants of one exchange, one after the other."""
LATE = 30
"""Requests after whose decision a bill and a reward come."""
KILLED = (10.0 * 3600.0, 12.0 * 3600.0)
"""Seconds of the day between which the first worker is away; its requests come afterwards."""
How = Literal["even", "pool", "one price"]
"""An even split; leases that move; and leases as one price of a dollar for all prompts would have
spent them, known from the first request on."""
LEVEL = 4.0e-4
"""Dollars of the pool per request: it binds."""


@dataclass(slots=True, eq=False)
class Side:
    """A router's engine and what it did."""

    name: str
    rows: Rows
    times: Array
    weight: float
    engine: Played
    pool: str = "left"
    at: int = 0
    spent: float = 0.0
    reward: float = 0.0
    due: list[tuple[str, float, float]] = field(default_factory=list)


def play(seed: int, *, requests: int, how: How) -> tuple[float, float, float]:
    """Return spend ÷ pool, mean reward, and the sum of what is lent ÷ pool at its highest."""
    sides, pool = _sides(seed, requests), LEVEL * requests * ROUTERS
    lending = Lending(sides, pool) if how == "pool" else None
    known = Lines(sides).leases(pool) if how == "one price" else [pool / ROUTERS] * ROUTERS
    for side, usd in zip(sides, known, strict=True):
        own = Spending((PeriodBudget(usd, "day"),))
        _declare(side, Spending(pool=side.pool) if lending else own)
    most = 0.0
    for now in np.arange(BEGIN, BEGIN + DAY, EVERY).tolist():
        if lending is not None:
            lending.exchange(now)
            most = max(most, lending.lent(now) / pool)
        for k, side in enumerate(sides):
            if not _is_away(k, now):
                _serve(side, now, until=now + EVERY)
    for side in sides:
        _feed(side, 0)
    n = sum(len(side.times) for side in sides)
    spent, reward = sum(side.spent for side in sides), sum(side.reward for side in sides)
    return spent / pool, reward / n, most


def _is_away(k: int, now: float) -> bool:
    return k % WORKERS == 0 and KILLED[0] <= now - BEGIN < KILLED[1]


def _sides(seed: int, requests: int) -> list[Side]:
    """Return routers whose answers are worth differently much: of some a good model's answer is
    hardly better than a cheap one's."""
    rng, val, test = np.random.default_rng([361, seed]), prompts("val"), prompts("test")
    sides = []
    for k in range(ROUTERS):
        # The traffic differs, as does what dear models bring.
        n = int(requests * (0.4, 0.7, 1.0, 1.9)[k % 4])
        weight = (0.15, 1.0)[k // 4]
        config = replace(
            declaration(val, LEVEL),
            knobs=knobs_for("live", {"seed": seed * ROUTERS + k, "commitment_ttl_seconds": 1e9}),
        )
        engine = Played.start(config)
        side = Side(
            f"router-{k}",
            rng.integers(len(test), size=n),
            BEGIN + np.sort(rng.random(n)) * DAY,
            weight,
            engine,
            ("left", "right")[k % 2],
        )
        for i, row in enumerate(rng.permutation(len(val))[:400].tolist()):
            record = engine.decide(f"w{i}", val.contexts[row], now=BEGIN - 1000.0 + i)
            j = val.models.index(record.model)
            engine.settle(f"w{i}", cost_usd=float(val.costs[row, j]))
            engine.learn(f"w{i}", reward=_worth(val.rewards[row], j, weight))
        sides.append(side)
    return sides


def _worth(rewards: Array, j: int, weight: float) -> float:
    """Return a reward: its distance from the cheapest model's, weighted."""
    return float(rewards[0] + weight * (rewards[j] - rewards[0]))


def _declare(side: Side, spending: Spending) -> None:
    config = side.engine.state.config
    config = replace(config, budget_usd_per_request=None, capabilities={"spending": spending})
    side.engine.configure(config, now=BEGIN - 1.0)


class Lending:
    """Two pools of one pool, and what they and their routers say to each other."""

    def __init__(self, sides: list[Side], usd: float) -> None:
        self._sides = sides
        budgets = (PeriodBudget(usd, "day"),)
        self.pools = {name: Pool(name) for name in ("all", "left", "right")}
        self.pools["all"].declare(PoolConfig(budgets, lease_seconds=DAY))
        for name in ("left", "right"):
            self.pools[name].declare(PoolConfig((), "all", lease_seconds=DAY))

    def exchange(self, now: float) -> None:
        """Let everybody report and lend, often enough that what was given back is lent on; who is
        away says nothing, and takes nothing."""
        for _ in range(EXCHANGES):
            for k, side in enumerate(self._sides):
                periods = side.engine.state.having(Periods)
                report = None if periods is None else periods.reported(side.name, now=now)
                if report is not None and not _is_away(k, now):
                    self.pools[side.pool].take_report(report, now=now)
            for name in ("left", "right"):
                above = self.pools[name].reported(now=now)
                assert above is not None
                self.pools["all"].take_report(above, now=now)
            for member, grant in self.pools["all"].grant_all(now=now):
                self.pools[member.removeprefix("pool:")].take(grant)
            for name in ("left", "right"):
                self._give(dict(self.pools[name].grant_all(now=now)), now)

    def _give(self, grants: dict[str, Granted], now: float) -> None:
        for k, side in enumerate(self._sides):
            grant = grants.get(f"router:{side.name}")
            if grant is not None and not _is_away(k, now):
                side.engine.apply(grant, now)

    def lent(self, now: float) -> float:
        """Return what routers hold together."""
        total = 0.0
        for side in self._sides:
            periods = side.engine.state.having(Periods)
            assert periods is not None and periods.ledger.holdings is not None
            holdings = [line.holdings.get(BEGIN) for line in periods.ledger.holdings.lines]
            total += sum(holding.usd for holding in holdings if holding is not None)
        return total


def _serve(side: Side, now: float, *, until: float) -> None:
    """Answer what has come until then; what came while the worker was away comes now."""
    test = prompts("test")
    while side.at < len(side.times) and side.times[side.at] < until:
        i = side.at
        row = int(side.rows[i])
        at = max(float(side.times[i]), now)
        record = side.engine.decide(str(i), test.contexts[row], now=at)
        j = test.models.index(record.model)
        reward = _worth(test.rewards[row], j, side.weight)
        side.spent += float(test.costs[row, j])
        side.reward += reward
        side.due.append((str(i), float(test.costs[row, j]), reward))
        side.at += 1
        _feed(side, LATE)


def _feed(side: Side, waiting: int) -> None:
    while len(side.due) > waiting:
        request_id, cost_usd, reward = side.due.pop(0)
        side.engine.settle(request_id, cost_usd=cost_usd)
        side.engine.learn(request_id, reward=reward)


class Lines:
    """Cross-fitted linear rewards and costs of every router, and what they would have done."""

    def __init__(self, sides: list[Side]) -> None:
        test = prompts("test")
        self.parts: list[tuple[Array, Array, Array]] = []
        for side in sides:
            contexts, costs, truth = (
                of[side.rows] for of in (test.contexts, test.costs, test.rewards)
            )
            worth = truth[:, :1] + side.weight * (truth - truth[:, :1])
            scale = np.maximum(costs.mean(0), 1e-12)
            expected = np.maximum(held_out(contexts, costs / scale), 0.05) * scale
            self.parts.append((held_out(contexts, worth), expected, costs))

    def leases(self, pool: float) -> list[float]:
        """Return what each router would spend at one price of a dollar for all."""
        columns = zip(*self.parts, strict=True)
        scores, expected, costs = (np.concatenate(column) for column in columns)
        chosen = within_budget(scores, expected, costs, pool / len(costs))
        spent = costs[np.arange(len(costs)), chosen]
        ends = np.cumsum([len(part[2]) for part in self.parts])
        parts = [float(part.sum()) for part in np.split(spent, ends[:-1])]
        return [part * pool / sum(parts) for part in parts]


def run(quick: bool, chosen: Choice = EVERYTHING) -> None:
    """Compare leases that move with an even split, over days of eight routers."""
    seeds, requests = chosen.seeds or (1 if quick else 5), 400 if quick else 1500
    rows = []
    for seed in range(seeds):
        even, kept, known = (
            play(seed, requests=requests, how=how) for how in ("even", "pool", "one price")
        )
        rows.append((seed, even[0], kept[0], known[0], kept[2], even[1], kept[1], known[1]))
    heads = ("seed", "even: spent", "pool: spent", "one price: spent", "most leased")
    title = f"{ROUTERS} routers, {WORKERS} workers, one away for two hours; ÷ the pool's budget"
    print_table(title, (*heads, "even: reward", "pool: reward", "one price: reward"), rows)
    # Of sums: what one day gains scatters as much as it is.
    even_sum, kept_sum, known_sum = (sum(row[k] for row in rows) for k in (5, 6, 7))
    print_figures(
        "pools",
        {
            "most_spent": max(row[2] for row in rows),
            "most_leased": max(row[4] for row in rows),
            "share_of_the_gain": (kept_sum - even_sum) / (known_sum - even_sum),
        },
    )


if __name__ == "__main__":
    command(run)()
