"""Events of all topics meet in any order: live, replayed and recomputed are equal to the bit."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as drawn
from msgspec.structs import replace

from router_state.changes import CONFIG, HEAD
from router_state.packing.framing import loads
from router_state.packing.layout import COUNTERS
from router_state.router import RouterState
from router_state.since import MOST_STEPS, UNKNOWN
from router_state.state.state_pieces import pack_pieces
from schemas.event import decode
from schemas.routes import RouteDecided
from streams.settings import Settings
from studies.audit.run import audit
from studies.history.merge import Merge
from studies.history.records import refused_offsets
from studies.history.rerun import Rerun
from studies.history.skipped import Skipped
from studies.history.verify import Verdict, verify
from tests.audit_world import DIMENSIONS, MODELS, World, router
from tests.memory_topics import MemoryTopics
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
        routers = self.world.worker[0].routers
        found = {router_id: routers.engine(router_id) for router_id in routers}
        return {name: engine.state for name, engine in found.items() if engine is not None}

    def replayed(self) -> tuple[Verdict, Rerun]:
        """Decide everything again, up to the live states."""
        history, skipped, states = self.world.topics(), Skipped(), self.states()
        rerun = Rerun(
            contexts=Sent(),  # type: ignore[arg-type]
            rank_of=SETTINGS.source_rank,
            read_prior=lambda reference: pytest.fail("no priors"),
            skipped=skipped,
        )
        refused = refused_offsets(history)
        for parked in self.world.worker.partitions[0].parking:
            topic = parked.topic.removeprefix(SETTINGS.prefix)
            refused.setdefault((topic, 0), set()).add(parked.offset)
        merged = Merge(
            history,
            0,
            refused=refused,
            skipped=skipped,
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
    counters = dict(zip(COUNTERS.names, head.pop("counters"), strict=True))
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


ANY_ORDER = drawn(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.parametrize("profile", ["live", "paper"])
@ANY_ORDER
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


def compacted(life: Life, *, tombstones: bool) -> MemoryTopics:
    """Return the topics as compaction leaves them: of each key the last record, or none of it where
    that is a tombstone which has gone as well."""
    topics = dict(life.world.records)
    for name in ("routers", "lambda", "changelog"):
        last = {record.key: record.offset for record in topics.get((name, 0), ())}
        topics[name, 0] = [
            record
            for record in topics.get((name, 0), ())
            if last[record.key] == record.offset and (tombstones or record.value is not None)
        ]
    return MemoryTopics(topics)


@pytest.mark.parametrize("tombstones", [True, False])
@ANY_ORDER
@given(ops=histories)
@example(
    ops=[
        ("requests", "odd", "q1"),
        ("gone", "odd"),
        ("routers", "odd", MODELS, None, None),
        ("requests", "odd", "q1"),
    ]
)
@example(
    ops=[
        ("routers", "odd", PORTFOLIOS[3], 5e-3, None),
        ("routers", "odd", MODELS, 5e-3, None),
        ("requests", "odd", "q1"),
    ]
)
def test_of_compacted_topics_nothing_is_called_broken(tombstones: bool, ops: list[Op]) -> None:
    life = Life("live")
    asyncio.run(life.run(ops))
    found = audit(compacted(life, tombstones=tombstones), SETTINGS)
    assert found.violations == {}, found.examples


async def test_a_model_that_came_and_went_makes_decisions_unprovable_once_compacted() -> None:
    life = Life("live")
    await life.run(
        [
            ("routers", "odd", PORTFOLIOS[3], 6.62e-4, None),
            ("routers", "odd", MODELS, 6.62e-4, None),
            ("requests", "odd", "q1"),
            ("requests", "even", "q1"),
        ]
    )
    whole = audit(life.world.topics(), SETTINGS)
    assert whole.clean and whole.notes == {}
    found = audit(compacted(life, tombstones=True), SETTINGS)
    assert found.clean and found.notes == {"learned": 1}
    (example,) = found.examples
    assert example.where == "router odd"
    assert "the declaration at offset 1 of pb.routers is gone" in example.what


async def test_a_decision_that_was_falsified_is_still_found_where_its_declarations_are_there() -> (
    None
):
    life = Life("live")
    await life.run([("requests", "odd", "q1"), ("requests", "even", "q1")])
    topics = life.world.records
    place = next(k for k, r in enumerate(topics["routes", 0]) if b'"odd"' in (r.value or b""))
    record = topics["routes", 0][place]
    body = orjson.loads(record.value or b"")
    body["candidates"][0]["mean"] += 0.25
    topics["routes", 0][place] = replace(record, value=orjson.dumps(body))
    found = audit(compacted(life, tombstones=True), SETTINGS)
    assert "decision_not_reproduced" in found.violations


async def test_an_order_that_does_not_fit_is_said_not_to_be_kept() -> None:
    life = Life("live")
    await life.run([("requests", "odd", "q1"), ("requests", "odd", "q2")])
    for number in range(MOST_STEPS):
        await life.do(("costs", "odd", "q1", None, number, 1e-5 * (number + 1)))
        await life.do(("rewards", "odd", "q2", None, number, "judge", number / MOST_STEPS))
    await life.do(("crashed",))
    await life.do(("requests", "odd", "q3"))
    (row,) = (r for r in life.world.records["routes", 0] if b'"q3"' in (r.value or b""))
    told = decode(RouteDecided, row.value).applied
    assert told is not None and told.since == UNKNOWN
    verdict, _ = life.replayed()
    assert "was not kept" in verdict.doubts["odd"] and verdict.holds
    await life.do(("costs", "odd", "q3", None, 0, 1e-5))
    await life.do(("requests", "odd", "q4"))
    row = life.world.records["routes", 0][-1]
    told = decode(RouteDecided, row.value).applied
    assert told is not None and told.since is not None and told.since.startswith("c")
