"""Read the status of routers on `pb.routers`: the declaration that workers took up, and a later
one that they refused, or that waits for a worker.

The last record of the topic may be refused. `pb.lambda` names the offset in force, `pb.refusals`
the refused ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from doors.console.bus import open_bus
from doors.console.failures import Failure, NoRouter, NotReadable
from doors.console.router_status import Declared, Later, RouterStatus
from ground.messages import Record, key_text
from schemas import (
    BASED_ON,
    REPEATED,
    EventRefused,
    LambdaUpdated,
    MalformedEvent,
    decode,
    decode_router,
)
from schemas.headers import based_on

if TYPE_CHECKING:
    from doors.console.bus import Bus
    from streams.settings import Settings

TOPICS = ("routers", "lambda", "refusals")
"""Topics that hold declarations, in force or refused."""
EARLIER_MS = 300_000
"""Milliseconds by which a refusal may be dated before its declaration: two clocks differ."""
MOST_REFUSALS, NEWEST = 100_000, 1000
"""Most refusals of a partition that are searched for those of declarations, which takes a second;
and number of newest refusals that are searched whatever their dates.
"""


async def absence_of(bus: Bus, router_id: str) -> Failure:
    """Return why there is no such router: never declared, refused, or not read yet."""
    router = await status_of(bus, router_id)
    if router.status in ("refused", "waiting"):
        return Failure(router.note or "")
    keys = [key for key, value in (await bus.newest("lambda")).items() if value is not None]
    return NoRouter(router_id, known=[(key or b"").decode(errors="replace") for key in keys])


async def statuses(bus: Bus, router_id: str | None = None) -> dict[str, RouterStatus]:
    """Return the status of each router, or of one; removed routers are left out.

    Args:
        bus: open for `TOPICS`.
    """
    states = await _states(bus, router_id)
    found: dict[str, _Reading] = {name: _Reading(name, state) for name, state in states.items()}
    async for record in bus.backwards("routers", router_id):
        name = key_text(record)
        if router_id in (None, name) and record.partition == bus.home("routers", name):
            found.setdefault(name, _Reading(name, None)).read(record)
        if router_id in found and found[router_id].is_done(record.offset):
            break
    routers = {name: reading.result() for name, reading in found.items()}
    await _add_refusals(bus, routers)
    return {
        name: one
        for name, one in routers.items()
        if one.state is not None or (one.later is not None and not one.later.removes)
    }


async def status_of(bus: Bus, router_id: str) -> RouterStatus:
    """Return the status of one router."""
    none = RouterStatus(router_id, None, None, None)
    return (await statuses(bus, router_id)).get(router_id, none)


async def published_state(settings: Settings, router_id: str) -> LambdaUpdated:
    """Return a router's state as its worker last published it. Raises what `absence_of` returns."""
    async with open_bus(settings, *TOPICS) as bus:
        state = (await status_of(bus, router_id)).state
        if state is None:
            raise await absence_of(bus, router_id)
    return state


async def require_in_force(bus: Bus, router_id: str) -> tuple[Declared, str | None]:
    """Return the declaration in force, and a note on a later one that is not.

    Raises:
        NoRouter: there is no such router.
        NotReadable: compaction removed the declaration.
        Failure: workers refused the declaration, or none has read it.
    """
    router = await status_of(bus, router_id)
    if router.state is None:
        raise await absence_of(bus, router_id)
    if router.in_force is None:
        raise NotReadable(router_id, router.state.config_offset)
    return router.in_force, router.note


def repeats(record: Record, offset: int) -> bool:
    """Tell whether a worker has written the declaration at this offset again."""
    headers = dict(record.headers)
    return REPEATED in headers and headers.get(BASED_ON) == str(offset).encode()


def readable(record: Record) -> Declared | None:
    """Return the declaration in a record of `pb.routers`; None: it holds none."""
    try:
        decode_router(key=record.key, value=record.value)
    except MalformedEvent:
        return None
    if record.value is None:
        return None
    document = orjson.loads(record.value)
    document.pop("snapshot", None)  # has done its work, and is large
    return Declared(document, record.offset)


class _Reading:
    """The records of one router, read from the newest on."""

    __slots__ = ("_done", "_in_force", "_later", "_origin", "_router_id", "_state")

    def __init__(self, router_id: str, state: LambdaUpdated | None) -> None:
        self._router_id, self._state = router_id, state
        self._in_force: Declared | None = None
        self._later: Later | None = None
        # The first offset of the declaration in force: later records are not in force, or a worker
        # has written them again.
        self._origin = -1 if state is None else state.config_offset
        self._done = False

    def read(self, record: Record) -> None:
        if self._done:
            return
        offset = -1 if self._state is None else self._state.config_offset
        again = REPEATED in dict(record.headers)
        if record.offset == offset or repeats(record, offset):
            self._in_force = self._in_force or readable(record)
            self._origin = _origin(record) if again else record.offset
        elif not again and self._later is None and record.offset > self._origin:
            self._later = _later(record)
        self._done = record.offset <= self._origin or (self._state is None and bool(self._later))

    def is_done(self, offset: int) -> bool:
        """Tell whether records before this offset add nothing to the router's status."""
        return self._done or offset <= self._origin

    def result(self) -> RouterStatus:
        return RouterStatus(self._router_id, self._state, self._in_force, self._later)


def _origin(record: Record) -> int:
    """Return the offset of the declaration that a worker has written again."""
    try:
        return based_on(record.headers) or 0
    except MalformedEvent:
        return record.offset


def _later(record: Record) -> Later:
    removes = record.value is None
    return Later(record.offset, readable(record), removes, record.timestamp)


async def _states(bus: Bus, router_id: str | None) -> dict[str, LambdaUpdated]:
    """Return the last states that workers published, by router."""
    if router_id is None:
        newest = await bus.newest("lambda")
    else:
        record = await bus.latest("lambda", router_id)
        newest = {} if record is None else {record.key: record.value}
    found = {}
    for key, value in newest.items():
        with suppress(MalformedEvent):  # of a newer version
            if key is not None and value is not None:
                found[key.decode(errors="replace")] = decode(LambdaUpdated, value)
    return found


async def _add_refusals(bus: Bus, found: dict[str, RouterStatus]) -> None:
    """Look up why later declarations were refused; one without a refusal waits for a worker."""
    wanted: dict[int, dict[tuple[str, int], int]] = defaultdict(dict)
    for name, one in found.items():
        if one.later is not None and not (one.later.removes and one.state is None):
            place = bus.home("refusals", name)
            wanted[place][name, one.later.offset] = one.later.at
    for place, due in wanted.items():
        since = min(due.values()) - EARLIER_MS
        await _find(bus.since("refusals", place, since, limit=MOST_REFUSALS), due, found)
        if due:  # no worker has read them, or a clock is far off
            await _find(bus.backwards("refusals", None, limit=NEWEST, only=place), due, found)


async def _find(
    records: AsyncIterator[Record], due: dict[tuple[str, int], int], found: dict[str, RouterStatus]
) -> None:
    """Collect the refusals of these declarations, by router and offset, from records."""
    async for record in records:
        refusal = _refusal(record)
        if refusal is None or due.pop((refusal.router_id, refusal.offset), None) is None:
            continue
        one = found[refusal.router_id]
        assert one.later is not None
        found[refusal.router_id] = replace(one, later=replace(one.later, refusal=refusal))
        if not due:
            break


def _refusal(record: Record) -> EventRefused | None:
    """Return the refusal of a declaration; None where a dead letter is about another event."""
    if b'"routers"' not in (record.value or b""):
        return None
    try:
        refusal = decode(EventRefused, record.value)
    except MalformedEvent:
        return None
    return refusal if refusal.topic == "routers" else None
