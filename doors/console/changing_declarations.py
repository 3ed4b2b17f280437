"""Change a router's declaration: read the declaration in force, edit it, write it unless somebody
wrote another one meanwhile, and wait until it is in force.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

import orjson

from doors.console.bus import Bus
from doors.console.document import faults
from doors.console.failures import NoAnswer, NotReadable, Refused
from doors.console.router_status import Declared
from doors.console.taken_up import TOPICS as READ
from doors.console.taken_up import absence_of, readable, repeats, status_of
from ground.json_values import Document
from ground.messages import Placed, Record, key_text
from schemas import (
    BASED_ON,
    DeadLetter,
    LambdaUpdated,
    MalformedEvent,
    RouterDeclared,
    decode,
)

TOPICS = (*READ, "dlq")
"""Topics that tell whether a declaration came into force."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""First and longest pause, in seconds, before a change that came too late is tried again; pauses
are random, so that two writers do not meet again."""
PATIENCE = 2.0
"""Seconds in which a worker that has just started may write the declaration in force again."""
LETTERS = 1000
"""Newest dead letters of a partition that are searched for one that was just written."""

Edit = Callable[[Document], Document]


async def read_router(bus: Bus, router_id: str, *, seconds: float = PATIENCE) -> Declared | None:
    """Return the declaration that the next one is to follow: the one in force, or a later one that
    waits for a worker. None: the router was never declared, is removed, or was refused.

    Raises:
        NotReadable: compaction removed it, and no worker wrote it again within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return (await status_of(bus, router_id)).basis
        except NotReadable:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.2)


async def declared_at(bus: Bus, router_id: str, offset: int) -> Declared | None:
    """Return the declaration that stood at an offset; None where compaction has removed it."""
    async for record in bus.backwards("routers", router_id):
        stood = record.offset == offset or repeats(record, offset)
        if stood and record.key == router_id.encode() and record.value is not None:
            return readable(record)
        if record.offset <= offset:
            break
    return None


async def write_router(
    bus: Bus, router_id: str, edit: Edit, *, seconds: float, create: bool = False
) -> LambdaUpdated:
    """Put an edited declaration in force and return the state that acknowledges it.

    Args:
        edit: takes the document in force and returns the new one; called again when somebody else
            was faster.
        create: whether to start from an empty router if there is none.

    Raises:
        NoRouter, Failure: there is none, or it was refused, and `create` is False.
        Refused: the worker refused the declaration; after `seconds` also because others keep
        changing it.
        NoAnswer: no worker took it up in time.
    """
    deadline, pause = time.monotonic() + seconds, FIRST_PAUSE
    while True:
        before = await read_router(bus, router_id, seconds=seconds)
        if before is None and not create:
            raise await absence_of(bus, router_id)
        document = edit(
            {"router_id": router_id, "models": {}} if before is None else before.document
        )
        try:
            return await put_in_force(
                bus,
                router_id,
                document,
                based_on=before.offset if before else -1,
                seconds=seconds,
            )
        except Refused as error:
            # Only a lost race is worth another attempt; a wrong declaration stays wrong.
            if error.reason != "stale_config" or time.monotonic() + pause > deadline:
                raise
        await asyncio.sleep(random.uniform(0.0, pause))
        pause = min(2.0 * pause, LONGEST_PAUSE)


async def put_in_force(
    bus: Bus, router_id: str, document: Document, *, based_on: int | None, seconds: float
) -> LambdaUpdated:
    """Write one declaration on the condition that the declaration at offset `based_on` is in force
    (−1: none), and wait until the new one is.
    """
    value = orjson.dumps(document)
    try:
        decode(RouterDeclared, value)
    except MalformedEvent as error:
        raise Refused(
            "the declaration",
            error.reason.value,
            "; ".join(faults(document)) or error.message,
            router_id=router_id,
        ) from error
    headers = [] if based_on is None else [(BASED_ON, str(based_on).encode())]
    # Followed before it is written, so that no answer can be missed.
    async with bus.follow("lambda", "dlq", router_id=router_id) as records:
        placed = await bus.send_bytes("routers", router_id, value, headers=headers)

        def acknowledged(name: str, record: Record) -> LambdaUpdated | Refused | None:
            if name == "dlq":
                return refusal_of(record, placed, "the declaration")
            if record.key != router_id.encode() or record.value is None:
                return None
            state = decode(LambdaUpdated, record.value)
            # A state in between acknowledges something older, such as a bill.
            return state if state.config_offset >= placed.offset else None

        try:
            answer: LambdaUpdated | Refused = await records.until(
                acknowledged, seconds=seconds, waited_for="took up the declaration"
            )
        except NoAnswer as error:
            error.message += " The change stays queued; the next worker takes it up or refuses it."
            raise
    if isinstance(answer, LambdaUpdated) and answer.config_offset > placed.offset:
        # A later record is in force. It may be the previous declaration, which a worker wrote again
        # after this one.
        async for record in bus.backwards("dlq", router_id, limit=LETTERS):
            answer = refusal_of(record, placed, "the declaration") or answer
    if isinstance(answer, Refused):
        raise answer
    return answer


def refusal_of(record: Record, placed: Placed, what: str) -> Refused | None:
    """Return the refusal of the event that was written at `placed`, if the record is its dead
    letter.
    """
    try:
        letter = DeadLetter.from_headers(record.headers)
    except MalformedEvent:
        return None
    if (letter.topic, letter.partition, letter.offset) != (
        placed.topic,
        placed.partition,
        placed.offset,
    ):
        return None
    return Refused(what, letter.reason, letter.message, router_id=key_text(record))
