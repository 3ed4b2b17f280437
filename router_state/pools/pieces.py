"""Write and read a pool in pieces: a change of one member is one small record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

from ground.json_values import Document, Json
from router_state.pools.line import Line, Part
from router_state.pools.pool import CONFIG, HEAD, Pool
from router_state.pools.pool_config import PoolConfig
from router_state.pools.pool_member import Member

NOTHING = Part()
"""The part of a member that was never lent anything, which is not written."""


def pack_piece(pool: Pool, name: str) -> Json | None:
    """Return a piece as JSON's types; None if there is none any more.

    Args:
        name: `HEAD`, `CONFIG`, or a member.
    """
    if name == HEAD:
        numbers = [pool.born, pool.taken, pool.moves, pool.numbered, pool.epoch]
        return {"numbers": numbers, "lines": [line.pack() for line in pool.lines.values()]}
    if name == CONFIG:
        return None if pool.config is None else pool.config.pack()
    member = pool.members.get(name)
    if member is None:
        return None
    parts = {
        str(line.number): part.pack()
        for line in pool.lines.values()
        if (part := line.parts.get(name)) is not None and part != NOTHING
    }
    return {"member": list(astuple(member)), "parts": parts}


def pack(pool: Pool) -> dict[str, Json]:
    """Return all pieces by name, as JSON's types."""
    names = (HEAD, CONFIG, *pool.members)
    return {name: one for name in names if (one := pack_piece(pool, name)) is not None}


def unpack(pool_id: str, pieces: Mapping[str, Json]) -> Pool:
    """Invert `pack`. A pool that an older program wrote is one piece, `HEAD`."""
    pool = Pool(pool_id)
    head: Document = pieces[HEAD]
    lines = [Line.unpack(line) for line in head["lines"]]
    is_whole = "members" in head
    config = head["config"] if is_whole else pieces.get(CONFIG)
    pool.config = None if config is None else PoolConfig.unpack(config)
    pool.born, pool.taken, pool.moves, *more = head["numbers"]
    pool.numbered, pool.epoch = more or (len(lines), -1)
    pool.lines = {(line.name, line.budget.identity, line.begin): line for line in lines}
    if is_whole:
        for number, line in enumerate(lines):
            line.number = number
        pool.members = {name: Member(*one) for name, one in head["members"].items()}
        pool.changed = {HEAD, CONFIG, *pool.members}
    else:
        _restore_members(pool, {str(line.number): line for line in lines}, pieces)
    return pool


def _restore_members(pool: Pool, lines: Mapping[str, Line], pieces: Mapping[str, Json]) -> None:
    for name, piece in pieces.items():
        if name in (HEAD, CONFIG):
            continue
        pool.members[name] = Member(*piece["member"])
        for number, part in piece["parts"].items():
            # A part of a line that is forgotten may be left until its member changes.
            if (line := lines.get(number)) is not None:
                line.parts[name] = Part.unpack(part)
