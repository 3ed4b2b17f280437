"""Tell what stands of a router on `pb.routers`: what workers took up, and a later declaration that
they refused, or that waits for one.

The last record of the topic may be refused. `pb.lambda` names the offset in force, `pb.refusals`
the refused ones.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import orjson

from doors.console.failures import Failure, NoRouter, NotReadable, Refused
from ground.json_values import Document
from ground.messages import Record
from schemas import (
    BASED_ON,
    REPEATED,
    EventRefused,
    LambdaUpdated,
    MalformedEvent,
    RouterDeclared,
    decode,
    decode_router,
)
from schemas.headers import based_on

if TYPE_CHECKING:
    from doors.console.bus import Bus

TOPICS = ("routers", "lambda", "refusals")
"""Topics that tell what is in force, and what is not."""
EARLIER_MS = 300_000
"""Milliseconds by which a refusal may be dated before its declaration: two clocks differ."""
MOST_REFUSALS = 100_000
"""Most refusals of a partition that are searched for those of declarations; a second's work."""

Status = Literal["in_force", "refused", "waiting", "leaving", "none"]


@dataclass(frozen=True, slots=True)
class Declared:
    """A router's declaration: a JSON document, which may have newer fields, and its offset."""

    document: Document
    offset: int

    @property
    def router(self) -> RouterDeclared:
        """Return the document as an event."""
        return decode(RouterDeclared, orjson.dumps(self.document))


@dataclass(frozen=True, slots=True)
class Later:
    """The newest record behind what is in force.

    Attributes:
        declared: None: it removes the router, or is no declaration.
        removes: the record is null.
        refusal: why workers refused it; None: no worker has read it.
        at: when it was written, in milliseconds since the epoch.
    """

    partition: int
    offset: int
    declared: Declared | None
    removes: bool
    at: int
    refusal: EventRefused | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The declaration of a router that workers took up, and the one behind it.

    Attributes:
        state: the last state that a worker published.
        in_force: the declaration that it names; None: there is none, or compaction removed it.
    """

    router_id: str
    state: LambdaUpdated | None
    in_force: Declared | None
    later: Later | None

    @property
    def status(self) -> Status:
        """Return what became of the newest declaration."""
        if self.later is None:
            return "none" if self.state is None else "in_force"
        if self.later.refusal is not None:
            return "refused"
        return "leaving" if self.later.removes else "waiting"

    @property
    def waiting(self) -> Declared | None:
        """Return the declaration that no worker has read yet."""
        return self.later.declared if self.later and self.later.refusal is None else None

    @property
    def basis(self) -> Declared | None:
        """Return the declaration that workers compare the next one with: one that waits for them,
        else the one in force; None: there is none.

        Raises:
            NotReadable: compaction removed it.
        """
        if self.status == "leaving":
            return None
        if self.waiting is not None:
            return self.waiting
        if self.in_force is None and self.state is not None:
            raise NotReadable(self.router_id, self.state.config_offset)
        return self.in_force

    @property
    def refused(self) -> Refused | None:
        """Return the failure of the newest declaration, if workers refused it."""
        if self.later is None or self.later.refusal is None:
            return None
        refusal = self.later.refusal
        what = f"the declaration of router {self.router_id!r} at offset {self.later.offset}"
        return Refused(what, refusal.reason, refusal.message, router_id=self.router_id)

    @property
    def note(self) -> str | None:
        """Return a sentence about a declaration that is not in force; None: the newest one is."""
        if self.later is None:
            return None
        if (refused := self.refused) is not None:
            kept = (
                "No declaration of it is in force."
                if self.state is None
                else f"In force is still the one at offset {self.state.config_offset}."
            )
            return f"{refused.message} {kept} The next declaration replaces it."
        what = "removal" if self.later.removes else "declaration"
        return (
            f"the {what} of router {self.router_id!r} at offset {self.later.offset} waits for a "
            "worker: is `pbstream worker` running?"
        )


async def absence_of(bus: Bus, router_id: str) -> Failure:
    """Return why there is no such router: never declared, refused, or not read yet."""
    standing = await standing_of(bus, router_id)
    if standing.status in ("refused", "waiting"):
        return Failure(standing.note or "")
    keys = [key for key, value in (await bus.newest("lambda")).items() if value is not None]
    return NoRouter(router_id, known=[(key or b"").decode(errors="replace") for key in keys])


async def standings(bus: Bus, router_id: str | None = None) -> dict[str, Standing]:
    """Return what stands of each router, or of one; routers that are gone are left out.

    Args:
        bus: open for `TOPICS`.
    """
    states = await _states(bus, router_id)
    found: dict[str, _Reading] = {name: _Reading(name, state) for name, state in states.items()}
    async for record in bus.backwards("routers", router_id):
        name = (record.key or b"").decode(errors="replace")
        if router_id in (None, name) and record.partition == bus.home("routers", name):
            found.setdefault(name, _Reading(name, None)).read(record)
    standing = {name: reading.result() for name, reading in found.items()}
    await _add_refusals(bus, standing)
    return {
        name: one
        for name, one in standing.items()
        if one.state is not None or (one.later is not None and not one.later.removes)
    }


async def standing_of(bus: Bus, router_id: str) -> Standing:
    """Return what stands of one router."""
    none = Standing(router_id, None, None, None)
    return (await standings(bus, router_id)).get(router_id, none)


async def require_in_force(bus: Bus, router_id: str) -> tuple[Declared, str | None]:
    """Return the declaration in force, and what is to be said of a later one.

    Raises:
        NoRouter: none was declared. NotReadable: compaction removed it.
        Failure: workers refused it, or none has read it.
    """
    standing = await standing_of(bus, router_id)
    if standing.state is None:
        raise await absence_of(bus, router_id)
    if standing.in_force is None:
        raise NotReadable(router_id, standing.state.config_offset)
    return standing.in_force, standing.note


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
        # Of what is in force, the first offset that it had: later records are not in force, or
        # were written again by a worker.
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

    def result(self) -> Standing:
        return Standing(self._router_id, self._state, self._in_force, self._later)


def _origin(record: Record) -> int:
    """Return the offset of the declaration that a worker has written again."""
    try:
        return based_on(record.headers) or 0
    except MalformedEvent:
        return record.offset


def _later(record: Record) -> Later:
    removes = record.value is None
    return Later(record.partition, record.offset, readable(record), removes, record.timestamp)


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


async def _add_refusals(bus: Bus, found: dict[str, Standing]) -> None:
    """Look up why later declarations were refused; one without a refusal waits for a worker."""
    wanted: dict[int, dict[tuple[str, int], int]] = defaultdict(dict)
    for name, one in found.items():
        if one.later is not None and not (one.later.removes and one.state is None):
            place = bus.home("refusals", name)
            wanted[place][name, one.later.offset] = one.later.at
    for place, due in wanted.items():
        since = min(due.values()) - EARLIER_MS
        async for record in bus.since("refusals", place, since, limit=MOST_REFUSALS):
            refusal = _refusal(record)
            if refusal is None or (refusal.router_id, refusal.offset) not in due:
                continue
            one = found[refusal.router_id]
            assert one.later is not None
            later = replace(one.later, refusal=refusal)
            found[refusal.router_id] = replace(one, later=later)
            del due[refusal.router_id, refusal.offset]
            if not due:
                break


def _refusal(record: Record) -> EventRefused | None:
    """Return the refusal of a declaration; None: it is of another event."""
    if b'"routers"' not in (record.value or b""):
        return None
    try:
        refusal = decode(EventRefused, record.value)
    except MalformedEvent:
        return None
    return refusal if refusal.topic == "routers" else None
