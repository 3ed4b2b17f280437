"""Write and read a family in pieces: a report of one member is two small records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, json, msgpack

from router_state.errors import DamagedState, UnusablePrior
from router_state.families.family_kin import Kin, Scatter
from router_state.families.family_owner import FamilyOwner
from router_state.families.family_register import BETWEEN, HEAD, MemberEntry
from router_state.families.family_reports import Model
from router_state.families.family_sums import Sums, sums_of
from router_state.learning.guess import COSTS, REWARDS, Guess
from router_state.packing.framing import Whole, body_of, decoded, frame

STORED_DIGITS = 6
"""Digits of weights and levels behind the point: a family may have thousands of members."""


class _Side(Struct):
    noise: float
    level_variance: float
    common: tuple[float, float]
    scatter: dict[str, tuple[float, float, float]]
    weights: dict[str, float]
    levels: dict[str, float]
    aside: list[str]
    models: tuple[float, float]
    mean: list[float]


class _Head(Struct):
    d: Whole
    projection: str
    due_at: float
    brought: tuple[str, ...]
    sides: tuple[_Side, _Side]


def pack_piece(owner: FamilyOwner, name: str) -> bytes | None:
    """Return a piece as a framed record; None if the piece no longer exists."""
    if name == HEAD:
        sides = (_side(owner.sides[0]), _side(owner.sides[1]))
        head = _Head(owner.d, owner.projection, owner.due_at, owner.brought, sides)
        return frame(json.encode(head))
    if BETWEEN in name:
        model = owner.fresh.get(name)
        return None if model is None else frame(msgpack.encode(model))
    member = owner.members.get(name)
    return None if member is None else frame(json.encode(member))


def _side(kin: Kin) -> _Side:
    scatter = {name: (one.ridge, one.bias, one.freedom) for name, one in kin.scatter.items()}
    common = kin.common.ridge, kin.common.bias
    weights, levels = (
        {name: round(value, STORED_DIGITS) for name, value in by_member.items()}
        for by_member in (kin.weights, kin.levels)
    )
    return _Side(
        kin.noise,
        kin.level_variance,
        common,
        scatter,
        weights,
        levels,
        sorted(kin.aside),
        (kin.models.ridge, kin.models.bias),
        kin.mean.tolist(),
    )


def model_of(record: bytes) -> Model:
    """Return the sums in a record. Raises DamagedState."""
    try:
        return msgpack.decode(body_of(record, "sums of a family"), type=Model)
    except ValueError as error:
        raise DamagedState(f"sums of a family: {error}") from None


def unpack(
    family: str, pieces: Mapping[str, bytes], read: Callable[[str], Model | None]
) -> FamilyOwner:
    """Invert `pack_piece`, given the head and the pieces of members. Raises DamagedState."""
    bodies = {name: body_of(one, "a member of a family") for name, one in pieces.items()}
    head = decoded(bodies.pop(HEAD, b""), _Head, "the head of a family")
    owner = FamilyOwner(family, read, head.d, head.projection, brought=head.brought)
    owner.sides = _kin(head, 0, REWARDS), _kin(head, 1, COSTS)
    for name, body in bodies.items():
        owner.members[name] = decoded(body, MemberEntry, "a member of a family")
    for name in head.brought:
        model = read(BETWEEN + name)
        for kin, data in zip(owner.sides, () if model is None else model.sides, strict=False):
            if data:
                kin.brought[name] = _sums(data, head.d)
    owner.due_at, owner.counted = head.due_at, False
    return owner


def _sums(data: bytes, d: int) -> Sums:
    try:
        return sums_of(data, d)
    except UnusablePrior as error:
        raise DamagedState(f"sums of a family: {error}") from None


def _kin(head: _Head, side: int, guess: Guess) -> Kin:
    one = head.sides[side]
    if len(one.mean) != head.d:
        raise DamagedState(f"the head of a family: a mean of {len(one.mean)} for {head.d}")
    return Kin(
        head.d,
        guess,
        one.noise,
        Scatter(*one.common),
        {name: Scatter(*ridges) for name, ridges in one.scatter.items()},
        weights=one.weights,
        levels=one.levels,
        level_variance=one.level_variance,
        aside=set(one.aside),
        models=Scatter(*one.models),
        mean=np.array(one.mean),
    )
