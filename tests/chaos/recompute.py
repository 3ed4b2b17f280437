"""Compute a partition's state afresh from the source topics, in the order that the changelog tells,
to compare bit by bit.

Every commit carries the offsets of the source topics which the state contains from then on. So the
changelog says which events were applied between two commits, and a worker that never crashed, fed
with them one by one, must arrive at the same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from agents.partition.partition import Partition
from agents.requests.book_feedback import refuse_orphan
from agents.requests.route_requests import route_waiting
from agents.table import keys
from agents.table.parking import Parked
from agents.table.recovered import unpack_offsets
from router_state.packing.framing import body_of
from router_state.state import record_bytes
from streams.changelog_format import EPOCH, FENCE
from streams.settings import Settings
from tests.memory_worker import SOURCES, MemoryWorker


@dataclass(slots=True)
class Step:
    """What one commit of the changelog did; `decided` holds when each request was, and which of its
    events.
    """

    at: float
    reached: dict[str, int] = field(default_factory=dict)
    decided: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    parked: list[Parked] = field(default_factory=list)


def steps(changelog: Iterable[Any]) -> list[Step]:
    """Cut a partition's changelog after each commit of source events, which ends with their
    offsets.

    Commits that time alone made stand at the beginning of the next step. The records of a stale
    owner are left out, as a recovery leaves them.
    """
    found = [Step(0.0)]
    epoch = 0
    for record in changelog:
        own = int(dict(record.headers)[EPOCH])
        if own < epoch:
            continue
        epoch = own
        step, kind = found[-1], record.key[:1]
        step.at = record.timestamp / 1000
        if kind == keys.REQUEST and record.value is not None:
            _, router_id, request_id = keys.split(record.key)
            known = record_bytes.unpack_record(record.value)
            step.decided[router_id, request_id] = known.decided_at, known.offset
        elif kind == keys.PARKED and record.value is not None:
            step.parked.append(Parked.unpack(record.value))
        elif kind == keys.WATERMARKS:
            step.reached = unpack_offsets(record.value)
            found.append(Step(0.0))
    return found


class Recomputation:
    """A worker without Kafka that owns one partition.

    Args:
        sources: {short topic name: {offset: record}} of this partition.
    """

    def __init__(
        self, settings: Settings, number: int, sources: Mapping[str, Mapping[int, Any]]
    ) -> None:
        # Its bytes are compared with a worker's, whose invariants were checked after each batch.
        self._worker = MemoryWorker(settings, [number], validates=False)
        self.clock = self._worker.clock
        self._number = number
        self._sources = sources
        self._reached: dict[str, int] = {}

    @property
    def _partition(self) -> Partition:
        return self._worker[self._number]

    async def run(self, changelog: Iterable[Any]) -> dict[bytes, bytes]:
        """Apply every event in order, and return the table."""
        await self._worker.start()
        for step in steps(changelog):
            await self._apply(step)
        self._worker.partitions.lost(frozenset([self._number]))
        await asyncio.sleep(0)  # the lane's tasks end
        return self._worker.table(self._number)

    async def _apply(self, step: Step) -> None:
        await self._route_waiting(step)
        await self._give_up(step)
        # In the order in which a lane applies what it has taken together.
        for short in SOURCES:
            topic = self._partition.ports.outbox.topic[short]
            offset = step.reached.get(topic, -1)
            for at in range(self._reached.get(topic, -1) + 1, offset + 1):
                record = self._sources[short].get(at)
                if record is not None:
                    self.clock.now = self._time_of(record, step)
                    with self._hidden(
                        lambda parked, short=short: short == "routers" and parked.request_id is None
                    ):
                        await self._worker.take(short, [record])
            self._reached[topic] = max(offset, self._reached.get(topic, -1))

    def _time_of(self, record: Any, step: Step) -> float:
        try:
            event = orjson.loads(record.value)
            return step.decided.get((event["router_id"], event["request_id"]), (step.at, 0))[0]
        except (ValueError, KeyError, TypeError):
            return step.at

    async def _route_waiting(self, step: Step) -> None:
        for router_id in {router_id for router_id, _ in step.decided}:
            for parked in self._partition.parking.waiting_for(router_id, None):
                request_id = orjson.loads(parked.value or b"{}").get("request_id")
                at, offset = step.decided.get((router_id, request_id), (0.0, -1))
                # Not a later one of the same id, which the worker took first.
                if parked.offset == offset:
                    self.clock.now = at
                    with self._hidden(
                        lambda other, own=parked: other.request_id is None and other is not own
                    ):
                        await route_waiting([router_id], self._partition)

    @contextmanager
    def _hidden(self, hide: Callable[[Parked], bool]) -> Iterator[None]:
        """Let some parked events be overlooked: those that the worker answered in another
        commit.
        """
        parking = self._partition.parking
        hidden = [parked for parked in parking if hide(parked) and parking.is_waiting(parked)]
        for parked in hidden:
            parking.hide(parked)
        yield
        for parked in hidden:
            parking.add(parked)

    async def _give_up(self, step: Step) -> None:
        refused = [parked for parked in step.parked if parked.refused]
        gone = [
            p
            for r in refused
            for p in self._partition.parking
            if (p.topic, p.offset) == (r.topic, r.offset) and not p.refused
        ]
        if gone:
            async with self._partition.lane.group() as answers:
                for parked in gone:
                    refuse_orphan(parked, self._partition, answers)


def differences(found: Mapping[bytes, bytes], expected: Mapping[bytes, bytes]) -> list[str]:
    """Name the pieces that are not equal to the bit.

    What waits has a time that depends on when it came. A pool grants by the clock: an audit
    compares what it granted with what its members took.
    """

    def mine(table: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        timed = (keys.PARKED, keys.POOL, FENCE)
        return {key: value for key, value in table.items() if key[:1] not in timed}

    a, b = mine(found), mine(expected)
    return [
        _name(key, a.get(key), b.get(key))
        for key in sorted(a.keys() | b.keys())
        if a.get(key) != b.get(key)
    ]


def _name(key: bytes, found: bytes | None, expected: bytes | None) -> str:
    kind = key[:1]
    where = f"{kind.decode()} {key[1:]!r}"
    if kind == keys.ARM and found and expected and len(found) == len(expected):
        apart = np.abs(
            np.frombuffer(body_of(found), "<f8") - np.frombuffer(body_of(expected), "<f8")
        ).max()
        return f"{where}: arrays differ by up to {apart:.3g}"
    return f"{where}: {found!r:.400} is not {expected!r:.400}"
