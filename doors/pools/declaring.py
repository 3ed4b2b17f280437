"""Read and write declarations of pools."""

from __future__ import annotations

import orjson

from doors.console.bus import Bus
from doors.console.failures import Failure
from ground.json_values import Document
from ground.messages import Placed, key_text
from router_state.errors import InvalidConfig
from schemas import MalformedEvent, decode_pool


async def read_pools(bus: Bus) -> dict[str, Document]:
    """Return the declarations of all pools, by id."""
    found: dict[str, Document | None] = {}
    async for record in bus.backwards("pools", None):
        pool_id = key_text(record)
        if pool_id in found:
            continue
        try:
            _check(record.key, record.value)
        except (MalformedEvent, InvalidConfig):
            continue  # refused, so the declaration before it is in force
        found[pool_id] = None if record.value is None else orjson.loads(record.value)
    return {name: found[name] for name in sorted(found) if found[name] is not None}  # type: ignore[misc]


async def write_pool(bus: Bus, pool_id: str, document: Document | None) -> Placed:
    """Declare a pool; None removes it.

    Raises:
        Failure: the document is not a declaration of a pool.
    """
    value = None if document is None else orjson.dumps({**document, "pool_id": pool_id})
    try:
        _check(pool_id.encode(), value)
    except MalformedEvent as error:
        raise Failure(f"pool {pool_id}: {error.message}") from None
    except InvalidConfig as error:
        raise Failure(f"pool {pool_id}: {error}") from None
    return await bus.send_bytes("pools", pool_id, value)


def _check(key: bytes | None, value: bytes | None) -> None:
    """Raise the MalformedEvent or InvalidConfig for which a worker refuses a declaration."""
    from router_state.pools.pool_config import PoolConfig  # brings numpy along

    _, declared = decode_pool(key=key, value=value)
    if declared is not None:
        PoolConfig.read(declared, offset=0)
