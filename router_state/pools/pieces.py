"""Write and read a pool in pieces: a change of one member is one small record."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, json

from router_state.errors import DamagedState, InvalidConfig
from router_state.packing.framing import Whole, body_of, decoded, frame
from router_state.pools.pool import CONFIG, HEAD, Pool
from router_state.pools.pool_config import PoolConfig
from router_state.pools.pool_member import Member
from router_state.pools.pool_period import KeptPeriod, MemberGrant, PoolPeriod

NOTHING = MemberGrant()
"""State of a member without any grant, which is not written."""


def pack_piece(pool: Pool, name: str) -> bytes | None:
    """Return a piece as a framed record; None if the piece no longer exists.

    Args:
        name: `HEAD`, `CONFIG`, or a member.
    """
    packed: object
    if name == HEAD:
        numbers = [pool.born, pool.taken, pool.moves, pool.numbered, pool.epoch]
        packed = {"numbers": numbers, "lines": [line.pack() for line in pool.lines.values()]}
    elif name == CONFIG:
        packed = None if pool.config is None else pool.config.pack()
    else:
        packed = _member(pool, name)
    return None if packed is None else frame(json.encode(packed))


def _member(pool: Pool, name: str) -> _Member | None:
    lines = pool.lines.values()
    grants = {line.number: line.grants[name] for line in lines if name in line.grants}
    written = {number: grant for number, grant in grants.items() if grant != NOTHING}
    return None if name not in pool.members else _Member(pool.members[name], written)


def pack(pool: Pool) -> dict[str, bytes]:
    """Return all pieces by name, as framed records."""
    names = (HEAD, CONFIG, *pool.members)
    return {name: one for name in names if (one := pack_piece(pool, name)) is not None}


class _Head(Struct):
    numbers: tuple[Whole, Whole, Whole, Whole, Whole]
    lines: list[KeptPeriod]


class _Member(Struct):
    member: Member
    grants: dict[int, MemberGrant]


def unpack(pool_id: str, pieces: Mapping[str, bytes]) -> Pool:
    """Invert `pack`. Raises DamagedState."""
    pool, bodies = Pool(pool_id), {name: body_of(one, name) for name, one in pieces.items()}
    head = decoded(bodies.pop(HEAD, b""), _Head, "the head of a pool")
    config = bodies.pop(CONFIG, None)
    try:
        lines = [PoolPeriod.unpack(line) for line in head.lines]
        pool.config = None if config is None else PoolConfig.unpack(config)
    except InvalidConfig as error:
        raise DamagedState(f"pool {pool_id}: {error}") from None
    pool.born, pool.taken, pool.moves, pool.numbered, pool.epoch = head.numbers
    pool.lines = {(line.name, line.budget.identity, line.begin): line for line in lines}
    numbered = {line.number: line for line in lines}
    for name, body in bodies.items():
        kept = decoded(body, _Member, name)
        pool.members[name] = kept.member
        for number, grant in kept.grants.items():
            # A member's piece may hold a grant of a forgotten line until the member changes.
            if (line := numbered.get(number)) is not None:
                line.grants[name] = grant
    return pool
