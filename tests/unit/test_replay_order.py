"""Events of all topics meet in any order: live, replayed and recomputed are equal to the bit."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as drawn

from router_state.framing import loads
from router_state.journal import CONFIG, HEAD
from router_state.snapshot import COUNTERS, pack_pieces
from router_state.state import RouterState
from schemas.event import decode
from schemas.routes import RouteDecided
from streams.audit.run import audit
from streams.history.account import Account
from streams.history.merge import Merge
from streams.history.records import refused_offsets
from streams.history.rerun import Rerun
from streams.history.verify import Verdict, verify
from streams.settings import Settings
from tests.audit_world import DIMENSIONS, MODELS, World, router
from tests.memory_worker import MemoryWorker

SETTINGS = Settings(
    prefix="pb.", app_id="ordered", partitions=1, context_ttl=2_000.0, requests_per_router=6
)
ROUTERS = ("even", "odd")
PORTFOLIOS = (
    MODELS,
    {name: MODELS[name] for name in ("llama", "mistral")},
    {**MODELS, "mistral": {"input_price_per_m": 0.2, "output_price_per_m": 0.2}},
    {**MODELS, "large-v2": {"input_price_per_m": 2.0, "output_price_per_m": 8.0}},
)
CAPS = {"hour": {"usd": 0.01, "mode": "soft"}}
Op = tuple[Any, ...]

router_ids = st.sampled_from(ROUTERS)
request_ids = st.integers(0, 7).map("q{}".format)
models = st.sampled_from([None, None, "llama", "mistral", "large-v2", "stranger"])
asked = st.tuples(st.just("requests"), router_ids, request_ids)
billed = st.tuples(
    st.just("costs"),
    router_ids,
    request_ids,
    models,
    st.integers(0, 2),
    st.sampled_from([0.0, 1e-5, 4e-4, 0.03]),
)
judged = st.tuples(
    st.just("rewards"),
    router_ids,
    request_ids,
    models,
    st.integers(0, 1),
    st.sampled_from(["judge", "human", "user"]),
    st.sampled_from([0.0, 0.05, 0.9]),
)
declared = st.tuples(
    st.just("routers"),
    router_ids,
    st.sampled_from(PORTFOLIOS),
    st.sampled_from([None, 6.62e-4, 5e-3]),
    st.sampled_from([None, CAPS]),
)
gone = st.tuples(st.just("gone"), router_ids)
passed = st.tuples(st.just("passed"), st.sampled_from([0.3, 61.0, 901.0, 2_001.0]))
crashed = st.just(("crashed",))
often = (asked, billed, judged)
histories = st.lists(
    st.one_of(*often, *often, *often, asked, declared, passed, gone | crashed), max_size=70
)


class Life:
    """A service in memory that goes through drawn events."""

    def __init__(self, profile: str) -> None:
        self.world = World(SETTINGS)
        self._profile = profile
        self._sent: dict[str, Any] = {}
        self._rng = np.random.default_rng(1)

    async def run(self, ops: list[Op]) -> None:
        """Start with both routers declared, and do everything in its order."""
        await self.world.start()
        for router_id in ROUTERS:
            await self.declare(router_id, MODELS, 6.62e-4, None)
        for op in ops:
            await self.do(op)
        for _ in range(2):
            await self.world.pass_time(0.5)

    async def do(self, op: Op) -> None:
        """Do one thing."""
        match op:
            case "requests", router_id, request_id:
                context = [*self._rng.normal(size=DIMENSIONS - 1).tolist(), 1.0]
                await self.send("requests", router_id, request_id=request_id, context=context)
            case "costs", router_id, request_id, model, revision, usd:
                named = {} if model is None else {"model": model}
                await self.send(
                    "costs", router_id, request_id=request_id, revision=revision, cost_usd=usd,
                    **named,
                )  # fmt: skip
            case "rewards", router_id, request_id, model, revision, source, reward:
                named = {} if model is None else {"model": model}
                await self.send(
                    "rewards", router_id, request_id=request_id, revision=revision, source=source,
                    reward=reward, **named,
                )  # fmt: skip
            case "routers", router_id, portfolio, budget, caps:
                await self.declare(router_id, portfolio, budget, caps)
            case "gone", router_id:
                await self.world.send("routers", None, key=router_id.encode())
            case "passed", seconds:
                await self.world.pass_time(seconds)
            case ("crashed",):
                await self.crash()

    async def declare(
        self, router_id: str, portfolio: dict[str, Any], budget: float | None, caps: Any
    ) -> None:
        """Declare a router."""
        event = router(router_id, profile=self._profile, models=portfolio)
        event["budget_usd_per_request"] = budget
        event["caps"] = caps
        await self.world.send("routers", {k: v for k, v in event.items() if v is not None})

    async def send(self, topic: str, router_id: str, **event: Any) -> None:
        """Write an event and let the worker take it."""
        await self.world.send(topic, {"router_id": router_id, **event})

    async def crash(self) -> None:
        """Let another worker recover the state, and give it the last events of each topic again."""
        world, before = self.world, self.world.worker
        log = world.records["changelog", 0]
        written = [
            (0, record.key, record.value, int(record.headers["epoch"]), 0.0) for record in log
        ]
        world.worker = MemoryWorker(SETTINGS, [0])
        world.worker.clock.now = before.clock.now
        await world.worker.start(SimpleNamespace(changelog=written, requests=before.requests))  # type: ignore[arg-type]
        for topic in ("routers", "requests", "costs", "rewards"):
            again = [
                SimpleNamespace(
                    topic=SETTINGS.topic(topic),
                    partition=0,
                    offset=record.offset,
                    key=record.key,
                    value=record.value,
                    headers=[(k, v.encode()) for k, v in record.headers.items()],
                    timestamp=record.timestamp * 1000,
                )
                for record in world.records[topic, 0][-3:]
            ]
            if again:
                await world.worker.take(topic, again)
        await world.pass_time(0.0)

    def states(self) -> dict[str, RouterState]:
        """Return the live states."""
        shard = self.world.worker.service.shards[0]
        found = {router_id: shard.engine(router_id) for router_id in shard}
        return {name: engine.state for name, engine in found.items() if engine is not None}

    def replayed(self) -> tuple[Verdict, Rerun]:
        """Decide everything again, up to the live states."""
        history, account, states = self.world.topics(), Account(), self.states()
        rerun = Rerun(
            contexts=Sent(),  # type: ignore[arg-type]
            rank_of=SETTINGS.source_rank,
            read_prior=lambda reference: pytest.fail("no priors"),
            account=account,
        )
        refused = refused_offsets(history)
        for parked in self.world.worker.service.shards[0].parking:
            topic = parked.topic.removeprefix(SETTINGS.prefix)
            refused.setdefault((topic, 0), set()).add(parked.offset)
        merged = Merge(
            history,
            0,
            refused=refused,
            account=account,
            since={name: state.since.text() for name, state in states.items()},
        )
        return verify(merged, rerun), rerun


class Sent:
    """Contexts as they were sent."""

    def of(self, request: Any, projection: object) -> Any:
        """Return a request's context."""
        return np.array(request.context)


def learned(state: RouterState) -> dict[str, Any]:
    """Return everything that a state holds but what only its worker knows."""
    pieces: dict[str, Any] = {**pack_pieces(state)}
    head = loads(pieces.pop(HEAD))
    del head["since"], pieces[CONFIG]
    counters = dict(zip(COUNTERS, head.pop("counters"), strict=True))
    # Money of requests that nobody knows moves nothing; the audit adds it up.
    del counters["unmatched_cost_usd"]
    return {**pieces, "head": head, "counters": counters}


def check(life: Life) -> None:
    """Compare what happened live with the same decided again, and with what the audit computes."""
    verdict, rerun = life.replayed()
    assert verdict.differences == {} and verdict.unprovable == {} and verdict.doubts == {}
    assert verdict.compared == verdict.equal == verdict.identical
    rows = [decode(RouteDecided, r.value) for r in life.world.records["routes", 0]]
    assert verdict.compared == len({(r.router_id, r.decided_at, r.seq) for r in rows})
    for router_id, state in life.states().items():
        assert learned(rerun.engines[router_id].state) == learned(state)
    found = audit(life.world.topics(), SETTINGS)
    assert found.violations == {}, found.examples
    assert "learned" not in found.notes and "history" not in found.notes, found.examples


@pytest.mark.parametrize("profile", ["live", "paper"])
@drawn(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(ops=histories)
@example(
    ops=[
        ("requests", "odd", "q1"),
        ("rewards", "odd", "q1", None, 0, "judge", 0.05),
        ("costs", "odd", "q1", "mistral", 0, 4e-4),
        ("requests", "odd", "q2"),
    ]
)
def test_whatever_meets_in_whichever_order_comes_out_again_to_the_bit(
    profile: str, ops: list[Op]
) -> None:
    life = Life(profile)
    asyncio.run(life.run(ops))
    check(life)
