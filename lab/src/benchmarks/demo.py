"""The demo's traffic through the engine that ships, without Kafka: what ten runs of it earn, cost,
and raise alarms.

uv run python -m benchmarks.demo [--quick]
"""

from __future__ import annotations

import numpy as np

from agents.declaring.configuration import config_of
from agents.publishing.published_values import route_value
from benchmarks.played import Played
from benchmarks.report import command, print_figures, print_table
from benchmarks.rows import Job, Row, gather
from commands.demo.benchmark import load_benchmark
from commands.demo.demo_clients import Sent, Traffic
from commands.demo.demo_play import Scenario
from commands.demo.show import Options, compose
from commands.demo.yardsticks import BEST_MIX, yardsticks
from schemas import (
    CostReported,
    RequestSubmitted,
    RewardObserved,
    RouteDecided,
    RouterDeclared,
    decode,
)

WITHIN = 0.03  # of the budget


class Service:
    """A worker's handling of the demo's events, one after the other."""

    def __init__(self) -> None:
        self.engine: Played | None = None
        self.decided = 0

    def take(self, event: Sent) -> RouteDecided | None:
        """Apply an event; return the decision of a request."""
        if isinstance(event, RouterDeclared):
            config = config_of(event, offset=self.decided, references={})
            if self.engine is None:
                self.engine = Played.start(config)
            else:
                self.engine.configure(config, now=float(self.decided))
            return None
        engine = self.engine
        assert engine is not None
        if isinstance(event, CostReported):
            engine.settle(event.request_id, cost_usd=event.cost_usd)
        elif isinstance(event, RewardObserved):
            engine.learn(event.subject, reward=event.reward)
        else:
            return self._decide(event, engine)
        return None

    def _decide(self, event: RequestSubmitted, engine: Played) -> RouteDecided:
        record = engine.decide(event.request_id, np.array(event.context), now=float(self.decided))
        self.decided += 1
        return decode(
            RouteDecided, route_value(event.router_id, event.request_id, record, repeat=False)
        )


def played(scenario: Scenario, seed: int) -> tuple[Traffic, Played]:
    """Play a scenario that has contexts to its end."""
    traffic, service = Traffic(scenario, in_flight=100, seed=seed), Service()
    service.take(scenario.declarations[0][1])
    while not traffic.done:
        for decision in [service.take(event) for event in traffic.step()]:
            if decision is not None:
                traffic.answer(decision)
    assert service.engine is not None
    return traffic, service.engine


def one(job: Job) -> dict[str, tuple[float, ...]]:
    """Play one budget and seed."""
    test = load_benchmark("test", encoder="static")
    place = {prompt: i for i, prompt in enumerate(test.prompts)}
    scenario = compose(Options(seed=job["seed"], budget_usd=job["budget"]))
    contexts = test.contexts[[place[prompt] for prompt in scenario.prompts]]
    with_contexts = Scenario(
        scenario.models,
        scenario.prompts,
        scenario.rewards,
        scenario.costs,
        scenario.available,
        scenario.declarations,
        contexts,
    )
    traffic, engine = played(with_contexts, job["seed"])
    mix = next(stick.reward for stick in yardsticks(scenario) if stick.name == BEST_MIX)
    cost = float(np.mean([outcome.cost_usd for outcome in traffic.outcomes])) / job["budget"]
    reward = float(np.mean([outcome.reward for outcome in traffic.outcomes]))
    good = reward > mix and abs(cost - 1.0) <= WITHIN
    return {
        "whole": (
            cost,
            reward,
            reward - mix,
            float(len(engine.take_alerts())),
            float(good),
            float(cost > 1.0 + WITHIN),
        )
    }


def verdict(rows: list[Row]) -> dict[str, float]:
    """Return, of the demo's own budget, what the runs earned, and how many were above the mix with
    their cost within 3 %.
    """
    mine = next(r for r in rows if r["budget"] == Options().budget_usd)
    return {
        name: mine[name]
        for name in ("reward", "above_mix", "cost_over_budget", "alerts", "good", "seeds")
    }


def run(quick: bool) -> None:
    """Play the demo's traffic ten times and more, at its budget and at another one."""
    jobs = [
        {"budget": b, "seed": s}
        for b in (Options().budget_usd, 6.62e-4)
        for s in range(3 if quick else 10)
    ]
    rows = gather(one, jobs, extra=("above_mix", "alerts", "good", "over"))
    cells = [
        [
            f"{r['budget']:g}",
            f"{r['cost_over_budget']:.3f} ± {r['cost_over_budget_half_width']:.3f}",
            f"{r['reward']:.4f}",
            f"{r['above_mix']:+.4f}",
            f"{r['alerts']:.2f}",
            f"{r['good'] * r['seeds']:.0f} of {r['seeds']}",
        ]
        for r in rows
    ]
    print_table(
        "The demo, simulated",
        ("budget, $", "cost ÷ B", "reward", "− mix", "alerts", "above the mix, cost within 3 %"),
        cells,
    )
    print_figures("demo", verdict(rows), rows=rows)


if __name__ == "__main__":
    command(run)()
