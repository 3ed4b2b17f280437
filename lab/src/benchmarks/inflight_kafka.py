"""The prompts of `inflight` through a simulation and through a real worker: the same events in the
same order, the same decisions?

    uv run python -m benchmarks.inflight_kafka [--quick]

Requests are sent in blocks of 25. Before each block, bills and rewards of all but the last 75
decided requests are in force (`pb.lambda` says so), so up to 100 are in flight and both sides have
seen the same. The dearest model's price is cut for the middle third. Every term of every decision
is compared.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from benchmarks.arena import Array
from benchmarks.inflight import CUT, CUT_COSTS, OFFSET
from benchmarks.inflight_sides import ROUTER, Side, Simulation, following
from benchmarks.protocol import GEMINI, MODERATE, PHASE, draw, three_phases
from benchmarks.report import Cell, command, print_figures, print_table
from commands.broker.choose import choose_broker
from commands.broker.wire import free_ports
from commands.demo.paper_models import known_before, paper_router
from commands.demo.stage import beside, running_worker
from schemas import CostReported, RequestSubmitted, RewardObserved, RouteDecided, RouterDeclared
from streams.log.service_topics import create_topics
from streams.settings import Settings, load_settings

BLOCK, IN_FLIGHT = 25, 100
COMPARED = (
    "model",
    "seq",
    "reason",
    "propensity",
    "lambda_t",
    "expected_reward",
    "expected_cost_usd",
    "candidates",
)


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """The input of both sides: n contexts (n, d), each model's rewards and costs (n, K), and what
    is declared before which request.
    """

    models: Sequence[str]
    contexts: Array
    rewards: Array
    costs: Array
    declared: Mapping[int, RouterDeclared]

    def feedback(self, decision: RouteDecided) -> tuple[CostReported, RewardObserved]:
        """Return the bill and the reward of a decision."""
        i, k = int(decision.request_id), self.models.index(decision.model)
        bill = CostReported(
            router_id=ROUTER, request_id=decision.request_id, cost_usd=float(self.costs[i, k])
        )
        label = RewardObserved(
            router_id=ROUTER,
            request_id=decision.request_id,
            reward=float(self.rewards[i, k]),
            source="judge",
        )
        return bill, label


def feed(requests: int, *, budget: float = MODERATE, seed: int = 0) -> Feed:
    """Return so many prompts of the three phases of `benchmarks.inflight`, a third of each."""
    drawn = draw(seed, offset=OFFSET, phases=True)
    each = min(requests // 3, PHASE)
    rows = [
        i
        for phase in three_phases(drawn.warm).values()
        for i in range(phase.start, phase.start + each)
    ]
    costs = drawn.costs[rows]
    costs[each : 2 * each, GEMINI] *= CUT_COSTS
    listed = paper_router(known_before("onnx"), router_id=ROUTER, budget_usd=budget, profile="live")
    name = drawn.benchmark.models[GEMINI]
    prices = {
        "input_price_per_m": CUT.input_price_per_m,
        "output_price_per_m": CUT.output_price_per_m,
    }
    cut = listed.model_copy(
        update={"models": {**listed.models, name: listed.models[name].model_copy(update=prices)}}
    )
    declared = {0: listed, each: cut, 2 * each: listed}
    return Feed(drawn.benchmark.models, drawn.contexts[rows], drawn.rewards[rows], costs, declared)


async def drive(told: Feed, side: Side) -> list[RouteDecided]:
    """Give a side everything in the one order and return its decisions; bills and rewards are those
    of what it chose.
    """
    decided: list[RouteDecided] = []
    answered = 0
    for start, end in blocks(len(told.contexts), told.declared):
        due = max(answered, start - (IN_FLIGHT - BLOCK))
        await side.feed_back([told.feedback(decision) for decision in decided[answered:due]])
        answered = due
        if start in told.declared:
            await side.declare(told.declared[start])
        contexts = [(i, tuple(told.contexts[i].tolist())) for i in range(start, end)]
        decided += await side.decide(
            [
                RequestSubmitted(router_id=ROUTER, request_id=str(i), context=context)
                for i, context in contexts
            ]
        )
    return decided


def blocks(n: int, declared: Mapping[int, object]) -> Iterator[tuple[int, int]]:
    """Yield where blocks of at most 25 requests begin and end; a declaration begins a new one."""
    edges = sorted({*range(0, n, BLOCK), *declared, n})
    yield from pairwise(edges)


def differences(simulated: Sequence[RouteDecided], served: Sequence[RouteDecided]) -> list[str]:
    """Return the request_ids of decisions of which any term differs."""
    pairs = zip(simulated, served, strict=True)
    return [
        ours.request_id
        for ours, theirs in pairs
        if any(getattr(ours, name) != getattr(theirs, name) for name in COMPARED)
    ]


async def through_kafka(told: Feed, settings: Settings) -> list[RouteDecided]:
    """Return a running worker's decisions."""
    async with following(settings) as service:
        return await drive(told, service)


def serve(told: Feed, bootstrap: str, *, log: Path) -> list[RouteDecided]:
    """Start a worker with topics of its own and return its decisions."""
    name = f"inflight-{uuid4().hex[:8]}"
    settings = load_settings(
        bootstrap=bootstrap, prefix=f"{name}.", app_id=name, web_port=free_ports(1)[0]
    )
    asyncio.run(create_topics(settings))
    with running_worker(
        settings, environment={"PB_ENCODER_BACKEND": "none", "OPENBLAS_NUM_THREADS": "1"}, log=log
    ) as process:
        return asyncio.run(beside(process, through_kafka(told, settings), log=log))


def outcome(told: Feed, decided: Sequence[RouteDecided]) -> tuple[float, float]:
    """Return cost ÷ budget and mean reward of decisions."""
    budget = told.declared[0].budget_usd_per_request
    assert budget is not None
    bills, labels = zip(*(told.feedback(decision) for decision in decided), strict=True)
    cost = sum(bill.cost_usd for bill in bills) / len(bills)
    return cost / budget, sum(label.reward for label in labels) / len(labels)


def run(quick: bool) -> None:
    """Compare a simulation's decisions with a real worker's, with a hundred requests in flight."""
    told = feed(300 if quick else 3 * PHASE)
    simulated = asyncio.run(drive(told, Simulation()))
    with choose_broker() as broker, tempfile.TemporaryDirectory() as folder:
        served = serve(told, broker.bootstrap, log=Path(folder) / "worker.log")
    differing = differences(simulated, served)
    rows: list[list[Cell]] = [
        [side, len(them), *outcome(told, them)]
        for side, them in (("simulation", simulated), ("worker", served))
    ]
    print_table(
        f"{len(differing)} decisions differ", ("side", "decisions", "cost ÷ budget", "reward"), rows
    )
    cost, reward = outcome(told, served)
    figures = {
        "decisions": len(served),
        "differences": len(differing),
        "cost_over_budget": cost,
        "reward": reward,
    }
    print_figures("inflight_kafka", figures)


if __name__ == "__main__":
    command(run)()
