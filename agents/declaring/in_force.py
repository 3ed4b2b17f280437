"""Keep the document in force of a router, so that `pb.routers` always ends with it.

The topic is compacted: only a router's last record stays. If that was refused, the declaration in
force would be gone. So a worker keeps each document that it puts in force, and writes it again
after a refused one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

import orjson

from agents.declaring.configuration import declaration_of
from agents.group import Answers
from agents.partition.chunks import portions
from agents.partition.partitions import Service
from agents.table import keys
from agents.table.own_routers import Shard
from agents.table.stored_declarations import InForce, readable
from ground.messages import Message
from schemas.headers import BASED_ON, REPEATED

LEAST_BYTES = 500
"""Bytes of a changelog record beside a kept document; for a short document, all of its bytes."""


def in_force(shard: Shard, router_id: str) -> InForce | None:
    """Return what is in force of a router, None of one that is not declared.

    A state that another version of this program has moved says it without a document: it follows
    from the configuration, and nobody knows what stands behind it.
    """
    engine = shard.engine(router_id)
    if engine is None:
        return None
    config, found = engine.state.config, readable(shard.declared(router_id))
    if found is not None and found.offset == config.offset:
        return found
    document = orjson.dumps(declaration_of(config, router_id))
    return replace(InForce.of(document, offset=config.offset), last=False)


def is_repeated(
    message: Message, headers: Iterable[tuple[str, bytes]], shard: Shard, router_id: str
) -> bool:
    """Tell whether a declaration is what is in force, written again by a worker."""
    if message.value is None or not any(name == REPEATED for name, _ in headers):
        return False
    found = in_force(shard, router_id)
    return found is not None and found.document == message.value


def keep(shard: Shard, router_id: str, value: bytes, *, offset: int) -> None:
    """Keep a document that was just put in force."""
    shard.keep_declared(router_id, InForce.of(value, offset=offset).pack())


def overtake(shard: Shard, router_id: str, *, offset: int) -> bool:
    """Note that the record at this offset is not in force; tell whether it follows the one that
    is."""
    found = in_force(shard, router_id)
    if found is None or found.offset > offset:
        return False
    shard.keep_declared(router_id, replace(found, last=False).pack())
    return True


async def repeat(routers: Iterable[tuple[int, str]], service: Service) -> None:
    """Write again what is in force of those routers, by partition, behind whose declaration another
    record stands."""
    owed = []
    for at in routers:
        if (shard := service.shards.get(at[0])) is not None:
            with service.aside.trying("repeat", shard, keys.HEAD, at[1]):
                if _owed(service, *at) is not None:
                    owed.append(at)
        await asyncio.sleep(0)  # unpacking ten thousand routers takes seconds
    for number, routers_of in groupby(sorted(owed), lambda at: at[0]):
        for portion in portions(
            routers_of, lambda at: _weight(service, *at), limit=service.batch_bytes
        ):
            if (lane := service.lanes.get(number)) is None:  # it was lost meanwhile
                break
            async with lane.batch() as answers:
                for _, router_id in portion:
                    with service.aside.trying("repeat", lane.shard, keys.HEAD, router_id):
                        _repeat(number, router_id, service, answers)


def _repeat(number: int, router_id: str, service: Service, answers: Answers) -> None:
    # Checked again: another declaration may have come into force.
    if (one := _owed(service, number, router_id)) is None:
        return
    shard = service.shard(number)
    if shard.declared(router_id) != one.pack():
        shard.keep_declared(router_id, one.pack())
    headers = ((BASED_ON, b"%d" % one.offset), (REPEATED, b"1"))
    answers.repeated.append((router_id, one.document, headers))
    service.ports.count("declaration_repeated")


def _owed(service: Service, number: int, router_id: str) -> InForce | None:
    """Return what is in force of a router if its topic ends with another record; a partition may
    have been lost meanwhile."""
    shard = service.shards.get(number)
    found = None if shard is None else in_force(shard, router_id)
    return None if found is None or found.last else found


def _weight(service: Service, number: int, router_id: str) -> int:
    shard = service.shards.get(number)
    return LEAST_BYTES + len(b"" if shard is None else shard.declared(router_id) or b"")
