"""Sweep the routers, in small portions: expire commitments, forget old requests, and bound the
bytes of those that stay.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from agents.partition.lane import SECONDS_AT_ONCE
from agents.partition.partition import Partition, Partitions
from agents.partition.poison import on_behalf_of
from agents.refusal_kinds import InternalError
from agents.table import Table, keys
from agents.table.own_routers import TOMBSTONE_BYTES
from router_state.changes import Changes
from router_state.events import Aged, Crowded, Event, Waited

log = logging.getLogger(__name__)

ALERT_ABOVE, CALM_BELOW = 0.8, 0.7
"""Parts of the limit. Above the first an alert is raised; a further alert needs a fall below the
second first.
"""
AIM_AT = 0.95
"""Part of the limit to which memory is reduced once it was exceeded."""
ROUTERS_PER_ROUND = 200
"""Routers of a partition that are swept in one round."""
REQUESTS_PER_ROUND = 10_000
"""Most requests of a router that one round expires or forgets."""
REQUESTS_AT_ONCE = 100
"""Requests that are expired or forgotten between two looks at the clock; with 64 models a record
takes 5 kB and some 50 µs.
"""


class Memory:
    """The bytes of the durable table as a share of their limit, when last measured. Within the
    limit no request is forgotten early.

    Args:
        limit: most bytes of the table; None: no limit.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = math.inf if limit is None else limit
        self._size = 0
        self._alerted = False

    def look(self, size: int) -> bool:
        """Note the bytes that the table takes; return whether an alert must be raised."""
        self._size = size
        crossed = size > ALERT_ABOVE * self._limit and not self._alerted
        if crossed or size < CALM_BELOW * self._limit:
            self._alerted = crossed
        return crossed

    @property
    def part(self) -> float:
        """Return the bytes taken as a part of the limit."""
        return self._size / self._limit

    def keep(self, remembered: int) -> int:
        """Return the number of a router's requests that may stay; every router forgets the same
        share.
        """
        if self._size <= self._limit:
            return remembered
        return remembered - math.ceil(remembered * (1.0 - AIM_AT * self._limit / self._size))


@dataclass(slots=True)
class _Due:
    """A router that is due: the number of requests that may still be swept, and the number that
    may stay, once known. `alone`: the router gets a portion of its own, as a portion with others
    has failed.
    """

    router_id: str
    left: int = REQUESTS_PER_ROUND
    keep: int | None = None
    alone: bool = False


class Sweep:
    """A sweep with its position in each partition.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self, partitions: Partitions, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._partitions, self._limits = partitions, partitions.ports.limits
        self._memory = Memory(self._limits.memory_bytes)
        self._clock = clock
        self._cursor: dict[int, int] = {}

    async def round(self) -> None:
        """Sweep the next few routers of each partition."""
        if self._memory.look(self._partitions.ports.states.size):
            self._warn_of_memory()
        await self._partitions.each(self._sweep)

    async def _sweep(self, partition: Partition) -> None:
        """Sweep the next few routers of a partition. Raises Gone."""
        due = deque(self._due(partition))
        while due:
            await partition.unpack_ahead(due[0].router_id)
            taken: list[_Due] = []
            try:
                async with partition.lane.group():
                    self._portion(due, taken, partition)
            except InternalError as error:
                _set_aside(due, taken, partition, error)
            await asyncio.sleep(0)

    def _due(self, partition: Partition) -> list[_Due]:
        router_ids, number = list(partition.routers), partition.number
        # The position is an index, not a name: if routers went meanwhile, some wait for the next
        # round.
        start = self._cursor.get(number, 0) if self._cursor.get(number, 0) < len(router_ids) else 0
        self._cursor[number] = start + ROUTERS_PER_ROUND
        return [
            _Due(router_id)
            for router_id in router_ids[start : start + ROUTERS_PER_ROUND]
            if not partition.aside.skips("sweep", keys.HEAD, router_id)
        ]

    def _portion(self, due: deque[_Due], taken: list[_Due], partition: Partition) -> None:
        """Sweep as many routers as a portion has time and bytes for, and add them to `taken`; a
        router that is not done stays the first.
        """
        started, bytes_left, first = self._clock(), partition.group_bytes // 4, True
        # The first router is swept even if the time is up: a portion that does nothing would come
        # again for ever.
        while due and bytes_left > 0 and (first or self._clock() - started < SECONDS_AT_ONCE):
            one = due[0]
            if one.alone and not first:
                return
            # `unpack_ahead` unpacks the router before the next portion, not inside a group.
            if not first and not partition.is_soon_unpacked(one.router_id):
                return
            limit = min(one.left, REQUESTS_AT_ONCE)
            if one not in taken:
                taken.append(one)
            moved, size = self._step(partition, one, limit=limit)
            bytes_left, first = bytes_left - size, False
            one.left -= moved
            if moved < limit or one.left <= 0:
                due.popleft()
            if one.alone:
                return

    def _step(self, partition: Partition, one: _Due, *, limit: int) -> tuple[int, int]:
        """Expire and forget at most `limit` requests of a router; return their number, and the
        approximate bytes of the changes.
        """
        router_id, left, size, routers = one.router_id, limit, 0, partition.routers
        if routers.engine(router_id) is None:  # dropped, or set aside
            return 0, 0
        now = partition.clock()
        with on_behalf_of(f"the sweep of router {router_id}"):
            for what in ("expired", "forgotten", "forgotten_early"):
                remembered = routers.remembers(router_id)
                event = self._event(what, one, remembered, limit=left, now=now)
                if isinstance(event, Crowded) and remembered <= event.keep:
                    break
                changes = routers.apply(router_id, event, now=now)
                size += _size_of(partition.table, router_id, changes)
                partition.count(what, len(changes.records))
                left -= len(changes.records)
        partition.aside.done("sweep", keys.HEAD, router_id)
        return limit - left, size

    def _event(self, what: str, one: _Due, remembered: int, *, limit: int, now: float) -> Event:
        match what:
            case "expired":
                return Waited(limit)
            case "forgotten":
                return Aged(now - self._limits.context_ttl, limit)
            case _:
                # Computed once per round from the memory above the limit.
                if one.keep is None:
                    most = self._limits.requests_per_router
                    one.keep = min(
                        self._memory.keep(remembered), remembered if most is None else most
                    )
                return Crowded(one.keep, limit)

    def _warn_of_memory(self) -> None:
        """Raise an alert, for the router with the most requests, that requests will soon be
        forgotten early.
        """
        counts = {
            (partition, router_id): partition.routers.remembers(router_id)
            for partition in self._partitions
            for router_id in partition.routers
        }
        log.warning(
            "remembered requests take %.0f %% of PB_MEMORY_BYTES: beyond it the settled ones are "
            "forgotten early",
            100 * self._memory.part,
        )
        if counts:
            partition, router_id = most = max(counts, key=counts.__getitem__)
            evidence = {
                "requests": counts[most],
                "of_all": sum(counts.values()),
                "limit_bytes": self._limits.memory_bytes,
            }
            partition.news.alert(
                router_id, "memory_nearly_full", evidence, direction="up", size=self._memory.part
            )


def _set_aside(
    due: deque[_Due], taken: list[_Due], partition: Partition, error: InternalError
) -> None:
    """Give each router of a failed portion a portion of its own; set the router of a portion of
    one aside.
    """
    if due and taken and due[0] is taken[-1]:
        due.popleft()
    if len(taken) == 1:
        partition.aside.note("sweep", keys.HEAD, taken[0].router_id, why=str(error))
        return
    for one in reversed(taken):
        one.alone = True
        due.appendleft(one)


def _size_of(table: Table, router_id: str, changes: Changes) -> int:
    """Return the approximate bytes of these changes in a record batch of the changelog."""
    # A record counts with its present size, as the changed one is not packed yet, and with a
    # tombstone for its context.
    keyed = (
        (keys.key(keys.REQUEST, router_id, name), record)
        for name, record in changes.records.items()
    )
    return sum(
        2 * (len(at) + TOMBSTONE_BYTES) + len((record and table.get(at)) or b"")
        for at, record in keyed
    )
