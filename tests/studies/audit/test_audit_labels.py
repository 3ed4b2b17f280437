"""A worker keeps labels of several sources and withdrawals, and an audit proves that it did."""

from random import Random

import orjson
import pytest
from msgspec.structs import replace

from streams.settings import Settings
from studies.audit.run import audit
from studies.history.records import Record
from tests.audit_world import DIMENSIONS, World, router
from tests.memory_topics import MemoryTopics

SETTINGS = Settings(prefix="pb.", app_id="audited", partitions=3)
SOURCES = {
    "gold": "human",
    "judges": ["judge-v2", "judge-v1"],
    "calibrate": {"judge-v2": "on", "judge-v1": "offset"},
}
SAID = ("human", "human:anna", "human:ben", "judge-v2", "judge-v1", "user")


async def labelled_world(seed: int) -> World:
    """Return two routers, one with sources and one without, and labels of all kinds of them."""
    world, draw = World(SETTINGS), Random(seed)
    await world.start()
    await world.send("routers", router("declared", sources=SOURCES))
    await world.send("routers", router("plain"))
    for number in range(40):
        for name in ("declared", "plain"):
            event = {"router_id": name, "request_id": f"r-{number}"}
            context = [draw.random() for _ in range(DIMENSIONS - 1)] + [1.0]
            session = {"session_id": f"s-{number % 4}"} if number % 3 else {}
            await world.send("requests", {**event, "context": context, **session})
            await world.send("costs", {**event, "cost_usd": 1e-4})
        for _ in range(6):
            revision = draw.randrange(3)
            said = {
                "router_id": draw.choice(("declared", "plain")),
                "request_id": f"r-{draw.randrange(number + 1)}",
                "source": draw.choice(SAID),
                "reward": None if revision and draw.random() < 0.4 else round(draw.random(), 3),
                "revision": revision,
            }
            if draw.random() < 0.2:
                said["session_id"] = f"s-{draw.randrange(4)}"
                del said["request_id"]
            await world.send("rewards", said)
            if draw.random() < 0.2:
                await world.send("rewards", said)
        await world.pass_time(2.0)
    return world


@pytest.mark.parametrize("seed", [1, 2])
async def test_labels_of_several_sources_and_withdrawals_are_clean(seed: int) -> None:
    world = await labelled_world(seed)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["routers_recomputed"] == 2
    assert findings.checked["rewards_refused"] == 0


async def test_withdrawals_that_the_topic_does_not_say_are_found() -> None:
    records = (await labelled_world(3)).topics()._records
    changed = {
        place: [_kept(record) if place[0] == "rewards" else record for record in found]
        for place, found in records.items()
    }
    assert changed != records
    findings = audit(MemoryTopics(changed), SETTINGS)
    assert "reward_differs" in findings.as_json()["violations"]


def _kept(record: Record) -> Record:
    """Return a record in which nothing is withdrawn."""
    said = orjson.loads(record.value or b"{}")
    return replace(record, value=orjson.dumps({**said, "reward": said["reward"] or 0.5}))


async def test_a_request_keeps_all_labels_once_one_of_its_session_was_withdrawn() -> None:
    world = World(SETTINGS)
    await world.start()
    await world.send("routers", router("plain"))
    of = {"router_id": "plain", "request_id": "r-1"}
    context = [0.5] * (DIMENSIONS - 1) + [1.0]
    await world.send("requests", {**of, "context": context, "session_id": "s"})
    whole = {"router_id": "plain", "session_id": "s", "source": "expert", "revision": 1}
    for said in (
        {**of, "source": "human", "reward": 0.7},
        {**whole, "reward": None},
        {**of, "source": "user", "reward": 1.0},
        {**of, "source": "human", "reward": None, "revision": 1},
    ):
        await world.send("rewards", said)
        await world.pass_time(2.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples


async def test_sources_that_are_declared_no_more_leave_no_violation() -> None:
    world, draw = World(SETTINGS), Random(5)
    await world.start()
    for sources in (None, SOURCES, None):
        await world.send("routers", router("home", sources=sources))
        for number in range(20):
            of = {"router_id": "home", "request_id": f"r-{number}"}
            context = [draw.random() for _ in range(DIMENSIONS - 1)] + [1.0]
            await world.send("requests", {**of, "context": context})
            for _ in range(4):
                revision = draw.randrange(4)
                reward = None if revision and draw.random() < 0.4 else draw.choice((0.2, 0.9))
                said = {"source": draw.choice(SAID), "reward": reward, "revision": revision}
                await world.send("rewards", {**of, **said})
        await world.pass_time(2.0)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
