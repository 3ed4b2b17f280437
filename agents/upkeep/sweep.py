"""Sweep the routers, in small portions: expire commitments and forget old requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from agents.lane.poison import on_behalf_of
from agents.partition.partitions import Service
from agents.refusal_kinds import InternalError
from agents.table import keys
from agents.table import unpacking as stored
from agents.table.own_routers import Shard
from agents.table.unpacking_ahead import is_warm, warm
from router_state.changes import Alert
from router_state.events import Aged, Crowded, Event, Waited

log = logging.getLogger(__name__)

ROUTERS_PER_ROUND = 200
"""Routers of a partition swept in one round."""
REQUESTS_PER_ROUND = 10_000
"""Requests of a router that one round moves at most."""
REQUESTS_AT_ONCE = 100
"""Requests that are moved between two looks at the clock; with 64 models a record of them takes 5
kB and some 50 µs."""
SECONDS_AT_ONCE = 0.01
"""Seconds of the event loop that a portion takes before it is written and all others go on."""


@dataclass(slots=True)
class _Turn:
    """A router's turn: how many requests it may still move, and how many the router may keep, once
    that is known; `alone`: in a portion of its own, as one with others has failed."""

    number: int
    router_id: str
    left: int = REQUESTS_PER_ROUND
    keep: int | None = None
    alone: bool = False


class Sweep:
    """A sweep with its position in each partition.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, service: Service, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._service = service
        self._clock = clock
        self._cursor: dict[int, int] = {}

    async def round(self) -> None:
        """Sweep the next few routers of each partition."""
        if self._service.memory.look(self._service.ports.states.size):
            self._warn_of_memory()
        turns = deque(turn for number in list(self._service.shards) for turn in self._turns(number))
        while turns:
            shard = self._service.shards.get(turns[0].number)
            if shard is not None:
                await warm(shard, turns[0].router_id)
            if (lane := self._service.lanes.get(turns[0].number)) is None:
                turns.popleft()
                continue
            taken: list[_Turn] = []
            try:
                async with lane.batch():
                    self._portion(turns, taken)
            except InternalError as error:
                self._set_aside(turns, taken, lane.shard, error)
            await asyncio.sleep(0)

    def _turns(self, number: int) -> list[_Turn]:
        router_ids = list(self._service.shards[number])
        # By place, not by name: where routers went meanwhile, some wait for the next time round.
        start = self._cursor.get(number, 0) if self._cursor.get(number, 0) < len(router_ids) else 0
        self._cursor[number] = start + ROUTERS_PER_ROUND
        shard, skips = self._service.shards[number], self._service.aside.skips
        return [
            _Turn(number, router_id)
            for router_id in router_ids[start : start + ROUTERS_PER_ROUND]
            if not skips("sweep", shard, keys.HEAD, router_id)
        ]

    def _set_aside(
        self, turns: deque[_Turn], taken: list[_Turn], shard: Shard, error: InternalError
    ) -> None:
        """Give those of a portion that failed a portion each, or set the one aside that failed."""
        if turns and taken and turns[0] is taken[-1]:
            turns.popleft()
        if len(taken) == 1:
            router_id = taken[0].router_id
            self._service.aside.note("sweep", shard, keys.HEAD, router_id, why=str(error))
            return
        for turn in reversed(taken):
            turn.alone = True
            turns.appendleft(turn)

    def _portion(self, turns: deque[_Turn], taken: list[_Turn]) -> None:
        """Sweep as many routers as a portion has time and bytes for, and add them to `taken`; one
        that is not done keeps its turn."""
        started, bytes_left, first = self._clock(), self._service.batch_bytes // 4, True
        # The first router is swept whatever the clock says: a portion that does nothing would come
        # again for ever.
        number = turns[0].number
        while turns and bytes_left > 0 and (first or self._clock() - started < SECONDS_AT_ONCE):
            turn = turns[0]
            if turn.alone and not first:
                return
            if turn.number != number:  # of another partition, which has a lane of its own
                return
            shard = self._service.shards.get(turn.number)
            # To be unpacked by `warm` before the next portion, not under the lock.
            if shard is not None and not first and not is_warm(shard, turn.router_id):
                return
            limit = min(turn.left, REQUESTS_AT_ONCE)
            if turn not in taken:
                taken.append(turn)
            moved, size = (0, 0) if shard is None else self._step(shard, turn, limit=limit)
            bytes_left, first = bytes_left - size, False
            turn.left -= moved
            if moved < limit or turn.left <= 0:
                turns.popleft()
            if turn.alone:
                return

    def _step(self, shard: Shard, turn: _Turn, *, limit: int) -> tuple[int, int]:
        """Expire and forget at most `limit` requests of a router; return how many, and about how
        many bytes that writes."""
        router_id, left, size = turn.router_id, limit, 0
        if shard.engine(router_id) is None:  # dropped, or set aside
            return 0, 0
        now = self._service.ports.clock()
        with on_behalf_of(f"the sweep of router {router_id}"):
            for what in ("expired", "forgotten", "forgotten_early"):
                event = self._event(what, shard, turn, limit=left, now=now)
                if isinstance(event, Crowded) and shard.remembers(router_id) <= event.keep:
                    break
                changes = shard.apply(router_id, event, now=now)
                size += stored.size_of(shard.table, router_id, changes)
                self._service.ports.count(what, len(changes.records))
                left -= len(changes.records)
        self._service.aside.done("sweep", shard, keys.HEAD, router_id)
        return limit - left, size

    def _event(self, what: str, shard: Shard, turn: _Turn, *, limit: int, now: float) -> Event:
        limits = self._service.ports.limits
        match what:
            case "expired":
                return Waited(limit)
            case "forgotten":
                return Aged(now - limits.context_ttl, limit)
            case _:
                # Computed once a turn: its share of the memory that is too much.
                if turn.keep is None:
                    remembered, most = shard.remembers(turn.router_id), limits.requests_per_router
                    turn.keep = min(
                        self._service.memory.keep(remembered), remembered if most is None else most
                    )
                return Crowded(turn.keep, limit)

    def _warn_of_memory(self) -> None:
        """Say that requests will soon be forgotten before their time, to the router that has the
        most of them."""
        service = self._service
        part, now = service.memory.part, service.ports.clock()
        counts = {
            router_id: shard.remembers(router_id)
            for shard in service.shards.values()
            for router_id in shard
        }
        log.warning(
            "remembered requests take %.0f %% of PB_MEMORY_BYTES: beyond it the settled ones are "
            "forgotten early",
            100 * part,
        )
        if counts:
            router_id = max(counts, key=counts.__getitem__)
            limit_bytes = service.ports.limits.memory_bytes
            evidence = {
                "requests": counts[router_id],
                "of_all": sum(counts.values()),
                "limit_bytes": limit_bytes,
            }
            alert = Alert(
                "memory_nearly_full", "up", part, since=now, observed_at=now, evidence=evidence
            )
            service.bulletin.alerts.append((router_id, alert))
