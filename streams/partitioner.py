"""Find a router's partition: murmur2 of its id, as the Java clients and aiokafka choose the
partition of a key.
"""

from __future__ import annotations

import random
from functools import lru_cache

from aiokafka.partitioner import murmur2

SIGN_BIT_OFF = 0x7FFFFFFF
"""Mask of Java's `Utils.toPositive`, which takes the hash for a signed number."""


REMEMBERED = 20_000
"""Keys whose partition is remembered: hashing one takes 5 µs."""


@lru_cache(REMEMBERED)
def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition of a record's key on a topic with this many partitions."""
    return int((murmur2(key) & SIGN_BIT_OFF) % partitions)


def partition_of(router_id: str, partitions: int) -> int:
    """Return the partition of a router on a topic with this many partitions.

    >>> partition_of("acme.chat", 8)
    1
    """
    return partition_of_key(router_id.encode(), partitions)


def choose_partition(key: bytes | None, partitions: int) -> int:
    """Return the partition of a record: its key's, any for a record without a key."""
    return random.randrange(partitions) if key is None else partition_of_key(key, partitions)
