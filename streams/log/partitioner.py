"""Where a router's events lie: by murmur2 of its id, as the Java clients and aiokafka choose the
partition of a key.
"""

from __future__ import annotations

from aiokafka.partitioner import murmur2

SIGN_BIT_OFF = 0x7FFFFFFF
"""Java's `Utils.toPositive`: the hash is taken for a signed number there."""


def partition_of(router_id: str, partitions: int) -> int:
    """Return the partition of a router on a topic with this many partitions."""
    return int((murmur2(router_id.encode()) & SIGN_BIT_OFF) % partitions)
