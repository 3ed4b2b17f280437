"""What stands of a router is what its worker took up, whatever else is on the topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from hypothesis import given
from hypothesis import strategies as st

from doors.console.bus import Bus
from doors.console.failures import NoRouter
from doors.console.router_status import RouterStatus
from doors.console.taken_up import absence_of, status_of, statuses
from schemas import BASED_ON, REPEATED, EventRefused, LambdaUpdated, encode

ROUTER = "acme.chat"
STEPS = st.lists(
    st.sampled_from(["good", "bad", "broken", "gone", "read", "publish", "other"]), max_size=24
)


@dataclass(frozen=True)
class Written:
    """A record as Kafka hands it out."""

    offset: int
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    key: bytes = ROUTER.encode()
    partition: int = 0

    @property
    def timestamp(self) -> int:
        return 1_000_000 + self.offset


@dataclass
class World:
    """One partition of three topics, and a worker that reads as far as it is told to.

    A worker refuses what is "bad" or "broken", and writes again what is in force behind it.
    """

    routers: list[Written] = field(default_factory=list)
    refusals: list[Written] = field(default_factory=list)
    read_to: int = 0
    in_force: tuple[int, bytes] | None = None
    last_user: int | None = None
    published: LambdaUpdated | None = None
    in_time: bool = True

    def home(self, name: str, router_id: str) -> int:
        return 0

    async def backwards(
        self, name: str, router_id: str | None, *, limit: int = 0, only: int = 0
    ) -> AsyncIterator[Written]:
        for record in reversed({"routers": self.routers, "refusals": self.refusals}[name]):
            yield record

    async def since(
        self, name: str, partition: int, time_ms: int, *, limit: int
    ) -> AsyncIterator[Written]:
        for record in self.refusals[:limit] if self.in_time else ():
            yield record

    async def latest(self, name: str, router_id: str) -> Written | None:
        newest = await self.newest(name)
        return Written(0, newest[ROUTER.encode()]) if newest else None

    async def newest(self, name: str) -> dict[bytes, bytes]:
        return {} if self.published is None else {ROUTER.encode(): encode(self.published)}

    def write(self, value: bytes | None, *, key: str = ROUTER, **headers: bytes) -> None:
        at = len(self.routers)
        named = tuple({"based": BASED_ON, "again": REPEATED}[k] for k in headers)
        pairs = tuple(zip(named, headers.values(), strict=True))
        self.routers.append(Written(at, value, pairs, key.encode()))

    def declare(self, kind: str) -> None:
        at = len(self.routers)
        if kind == "other":
            self.write(orjson.dumps({"router_id": "b", "models": {}}), key="b")
            return
        document = {"router_id": ROUTER, "models": {}, "gamma": 0.9 + at / 1e6, "kind": kind}
        value = {"gone": None, "broken": b"{"}.get(kind, orjson.dumps(document))
        self.write(value)

    def read(self) -> None:
        """Read one record, as a worker does."""
        if self.read_to == len(self.routers):
            return
        record = self.routers[self.read_to]
        self.read_to += 1
        again = REPEATED in dict(record.headers)
        if record.key != ROUTER.encode():
            return
        if record.value is None:
            self.in_force = None
        elif self.in_force and record.value == self.in_force[1] if again else good(record.value):
            self.in_force = (record.offset, record.value)
        else:
            refusal = EventRefused(
                router_id=ROUTER,
                topic="routers",
                partition=0,
                offset=record.offset,
                reason="wrong_prior",
                message="it is not there",
            )
            self.refusals.append(Written(len(self.refusals), encode(refusal)))
            if self.in_force is not None:
                at, value = self.in_force
                self.write(value, based=b"%d" % at, again=b"1")

    def publish(self) -> None:
        self.published = None if self.in_force is None else state(self.in_force[0])

    def stand(self) -> RouterStatus:
        return asyncio.run(status_of(cast(Bus, self), ROUTER))


def good(value: bytes | None) -> bool:
    return b'"good"' in (value or b"")


def state(offset: int) -> LambdaUpdated:
    zero: dict[str, Any] = dict.fromkeys(
        ("seq", "in_flight", "decided", "settled", "expired", "rewards_applied"), 0
    )
    money = dict.fromkeys(("lambda_t", "spend_usd", "committed_usd", "unmatched_cost_usd"), 0.0)
    return LambdaUpdated.model_validate(
        {
            **zero,
            **money,
            "router_id": ROUTER,
            "budget_usd_per_request": None,
            "config_offset": offset,
            "observed_at": "2026-11-21T09:31:00Z",
        }
    )


@given(STEPS, st.booleans())
def test_only_what_the_worker_took_up_is_in_force(steps: list[str], in_time: bool) -> None:
    world = World(in_time=in_time)
    for step in steps:
        if step == "read":
            world.read()
        elif step == "publish":
            world.publish()
        else:
            world.declare(step)
    # The worker reads on, and says what it did: a page may be asked at that moment.
    while world.read_to < len(world.routers):
        world.read()
    world.publish()
    standing = world.stand()
    if world.in_force is None:
        assert standing.in_force is None and standing.basis is None
        assert standing.status in ("none", "refused")
    else:
        assert standing.in_force is not None and standing.basis == standing.in_force
        assert standing.in_force.document == orjson.loads(world.in_force[1])
        # Whoever is based on it is not refused as stale.
        assert standing.in_force.offset == world.in_force[0]
    last = [one.value for one in world.routers if one.key == ROUTER.encode() and not one.headers]
    refused = last[-1:] not in ([], [None]) and not good(last[-1])
    assert (standing.status == "refused") == refused
    assert (standing.refused is not None) == refused


@given(STEPS, st.sampled_from(["good", "gone"]))
def test_what_no_worker_has_read_waits_and_the_next_one_is_based_on_it(
    steps: list[str], last: str
) -> None:
    world = World()
    for step in steps:
        world.read() if step in ("read", "publish") else world.declare(step)
    while world.read_to < len(world.routers):
        world.read()
    world.publish()
    before = world.stand()
    world.declare(last)
    standing = world.stand()
    assert standing.in_force == before.in_force
    if last == "good":
        assert standing.status == "waiting" and standing.basis is not None
        assert standing.basis.offset == len(world.routers) - 1
        assert "waits for a worker" in (standing.note or "")
    else:
        assert standing.basis is None
        assert standing.status == ("none" if before.state is None else "leaving")


def test_a_refused_new_router_is_no_router_and_its_reason_is_said() -> None:
    world = World()
    world.declare("bad")
    world.read()
    failure = asyncio.run(absence_of(cast(Bus, world), ROUTER))
    assert "wrong_prior (it is not there)" in failure.message
    assert "No declaration of it is in force. The next declaration replaces it" in failure.message
    assert "pbstream models add" in NoRouter(ROUTER).message


def test_a_router_that_left_without_a_trace_is_not_listed() -> None:
    world = World()
    world.declare("gone")
    assert asyncio.run(statuses(cast(Bus, world))) == {}
    world.published = state(0)
    assert "did you mean 'acme.chat'?" in asyncio.run(absence_of(cast(Bus, world), "chat")).message
