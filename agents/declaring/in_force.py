"""Keep the document in force of a router, so that `pb.routers` always ends with it.

The topic is compacted: only a router's last record stays. If the last record was refused, the
declaration in force would be gone. So a worker stores each document that it puts in force, and
writes the document again after a refused record.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Self

import orjson

from agents.declaring.configuration import declaration_of
from agents.group import Answers, chunks
from agents.partition.partition import Partition
from agents.table import keys
from ground.messages import Message
from router_state.errors import DamagedState
from router_state.packing.framing import body_of, frame
from schemas.headers import BASED_ON, REPEATED

LEAST_BYTES = 500
"""Bytes of a changelog record beside the document, and the least that a document counts for."""
_HEAD = struct.Struct(">?q")
"""`last`, offset: big-endian, so that no padding depends on the machine."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A declaration in force.

    Attributes:
        offset: offset of the declaration on `pb.routers`.
        last: whether the declaration is the router's last record, as far as this worker has read.
        packed: the document, compressed.
    """

    offset: int
    last: bool
    packed: bytes

    @classmethod
    def of(cls, value: bytes, *, offset: int) -> Self:
        """Return a declaration that was just put in force, without its snapshot: the snapshot is
        large, and the router has taken it in.
        """
        if b'"snapshot"' in value:
            value = orjson.dumps(
                {name: part for name, part in orjson.loads(value).items() if name != "snapshot"}
            )
        return cls(offset, True, zlib.compress(value, 1))

    @property
    def document(self) -> bytes:
        """Return the declaration's value."""
        return zlib.decompress(self.packed)

    def pack(self) -> bytes:
        """Return a framed record of `last`, the offset and the document."""
        return frame(_HEAD.pack(self.last, self.offset) + self.packed)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Invert `pack`. Raises DamagedState."""
        body = body_of(data, "the declaration in force")
        last, offset = _HEAD.unpack_from(body)
        return cls(offset, last, body[_HEAD.size :])


def _stored(partition: Partition, router_id: str) -> bytes | None:
    return partition.table.get(keys.key(keys.DECLARED, router_id))


def _store(partition: Partition, router_id: str, one: InForce) -> None:
    if (packed := one.pack()) != _stored(partition, router_id):
        partition.table.put(keys.key(keys.DECLARED, router_id), packed)


def in_force(partition: Partition, router_id: str) -> InForce | None:
    """Return a router's declaration in force; None for a router that is not declared.

    If the stored document is missing, damaged or another one, the document is derived from the
    configuration. It is then not known whether other records follow the declaration on the topic.
    """
    engine = partition.routers.engine(router_id)
    if engine is None:
        return None
    config, stored = engine.state.config, _stored(partition, router_id)
    try:
        found = None if stored is None else InForce.unpack(stored)
    except DamagedState:
        found = None
    if found is not None and found.offset == config.offset:
        return found
    document = orjson.dumps(declaration_of(config, router_id))
    return replace(InForce.of(document, offset=config.offset), last=False)


def is_repeated(
    message: Message, headers: Iterable[tuple[str, bytes]], partition: Partition, router_id: str
) -> bool:
    """Tell whether a record is the declaration in force, written again by a worker."""
    if message.value is None or not any(name == REPEATED for name, _ in headers):
        return False
    found = in_force(partition, router_id)
    return found is not None and found.document == message.value


def keep(partition: Partition, router_id: str, value: bytes, *, offset: int) -> None:
    """Store a document that was just put in force."""
    _store(partition, router_id, InForce.of(value, offset=offset))


def overtake(partition: Partition, router_id: str, *, offset: int) -> bool:
    """Note that the record at this offset is not in force; return whether the record stands behind
    the declaration in force.
    """
    found = in_force(partition, router_id)
    if found is None or found.offset > offset:
        return False
    _store(partition, router_id, replace(found, last=False))
    return True


async def repeat(router_ids: Collection[str], partition: Partition) -> None:
    """Write the declaration in force of these routers again if another record follows it on the
    topic. Raises Gone.
    """
    overtaken = []
    for router_id in sorted(router_ids):
        with partition.aside.trying("repeat", keys.HEAD, router_id):
            if _overtaken(partition, router_id) is not None:
                overtaken.append(router_id)
        await asyncio.sleep(0)  # unpacking ten thousand routers takes seconds
    for portion in chunks(
        overtaken, lambda router_id: _weight(partition, router_id), limit=partition.group_bytes
    ):
        async with partition.lane.group() as answers:
            for router_id in portion:
                with partition.aside.trying("repeat", keys.HEAD, router_id):
                    _repeat(partition, router_id, answers)


def _repeat(partition: Partition, router_id: str, answers: Answers) -> None:
    # Checked again: another declaration may have come into force meanwhile.
    if (one := _overtaken(partition, router_id)) is None:
        return
    _store(partition, router_id, one)
    headers = ((BASED_ON, b"%d" % one.offset), (REPEATED, b"1"))
    answers.repeated.append((router_id, one.document, headers))
    partition.count("declaration_repeated")


def _overtaken(partition: Partition, router_id: str) -> InForce | None:
    """Return a router's declaration in force if the router's last record on the topic is another
    one.
    """
    found = in_force(partition, router_id)
    return None if found is None or found.last else found


def _weight(partition: Partition, router_id: str) -> int:
    return LEAST_BYTES + len(_stored(partition, router_id) or b"")
