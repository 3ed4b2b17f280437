"""An audit tells a service that nobody serves, and two moments from a fault."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from msgspec import structs

from agents.table import keys
from schemas.topic_roles import SOURCES
from streams.settings import Settings
from studies.audit.findings import Findings, Kind
from studies.audit.run import audit
from studies.audit.served import PATIENCE
from studies.history.records import Record
from tests.audit_world import World, busy_world
from tests.memory_topics import MemoryTopics

SETTINGS = Settings(prefix="t.", app_id="t", partitions=2)


@pytest.fixture(scope="module")
def world() -> World:
    return asyncio.run(busy_world(SETTINGS, requests=60))


def served(world: World, waiting: list[tuple[str, float]], *, ago: float) -> Findings:
    """Audit a service some seconds after it was last seen, with events that came since then."""
    records = {place: list(log) for place, log in world.records.items()}
    end = max(one.timestamp for one in records["changelog", 0] if one.key == keys.WATERMARKS)
    for topic, later in waiting:
        log = records[topic, 0]
        log.append(Record(len(log), end + later, b"nobody", b"{}", {}))
    return audit(MemoryTopics(records), SETTINGS, now=end + ago)


@pytest.mark.parametrize(
    "topic", [name for name in SOURCES if name not in ("pools", "leases", "kin")]
)
def test_events_that_nobody_takes_in_are_told_with_their_time(world: World, topic: str) -> None:
    found = served(world, [(topic, 1.0), (topic, 2.0)], ago=1.5 + PATIENCE)
    assert found.violations == {Kind.UNSERVED: 1}
    (example,) = [one for one in found.examples if one.kind == Kind.UNSERVED]
    assert example.where == "partition 0" and f"2 {topic} wait" in example.what
    assert "no worker answers since 20" in example.what


def test_who_waits_for_a_moment_is_not_forgotten(world: World) -> None:
    assert served(world, [("requests", 1.0)], ago=PATIENCE).clean


def test_a_service_without_events_needs_nobody(world: World) -> None:
    assert served(world, [], ago=1e6).clean


def test_a_worker_that_is_behind_answers(world: World) -> None:
    # The state has moved after the event came.
    assert served(world, [("requests", -1e5)], ago=1.0).clean


@pytest.mark.parametrize("moved", [False, True])
def test_amounts_of_another_moment_are_no_fault(world: World, moved: bool) -> None:
    records = {place: list(log) for place, log in world.records.items()}
    for number in range(SETTINGS.partitions):
        log = records["lambda", number]
        for at, one in enumerate(log):
            value = orjson.loads(one.value or b"null")
            # As a revised bill moves them, which no count shows.
            value["spend_usd"] += 1.0
            value["applied"]["costs"] += moved
            log[at] = structs.replace(one, value=orjson.dumps(value))
    found = audit(MemoryTopics(records), SETTINGS)
    assert (found.violations[Kind.PUBLISHED] == 0) == moved
    assert found.notes["published"] > 0 or not moved
