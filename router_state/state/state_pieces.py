"""The state as bytes and back, equal to the bit: JSON for what is small, arrays for what is large,
never pickle.

A router is kept in pieces, so that an event writes only what it changed. These are its
configuration, its `head` (counters, pacer, clock and prices), two pieces per arm (what rewards and
what bills change), one of each shared prior, the posterior sample, blocks of the window and one
piece per request. Each begins with the version of its format and a checksum. `layout` declares the
numbers in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import orjson

from router_state import registered
from router_state.changes import CONFIG
from router_state.changes import HEAD as HEAD_PIECE
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.kernel import BLOCK, PIECES, SAMPLE_PIECE, Arm, Chance, cost_piece
from router_state.pacing.dollar_dual import DollarDual
from router_state.pacing.ema_pacer import EmaPacer
from router_state.packing import layout
from router_state.packing.framing import Framed, Json, frame, packed
from router_state.packing.prior_bytes import pack_prior
from router_state.router import Chances, RouterState
from router_state.state.config_bytes import config_body

_BLOCKS = {name: block for block, name in enumerate(PIECES)}
"""Number of the block of the window that a piece holds, by the piece's name."""
_COST_PIECE = cost_piece("")
"""Beginning of the names of cost models' pieces."""
JSON_PARTS: Mapping[str, Callable[[RouterState], Any]] = {
    TOKENS: attrgetter("arms.tokens"),
}
"""Parts of a router that are stored as JSON, by the names of their pieces; None: the router does
not have the part.
"""


def _head(state: RouterState) -> bytes:
    """Return the head: counters, pacer, caps, random generator, and the numbers of every arm that
    decisions change.
    """
    arms, pacer, window = state.arms.all, state.pacer, state.arms.window
    dual = layout.DUAL.of(pacer) if isinstance(pacer, DollarDual) else layout.NO_DUAL
    return orjson.dumps(
        {
            "counters": layout.COUNTERS.of(state),
            "ema": layout.EMA.of(pacer) if isinstance(pacer, EmaPacer) else None,
            "dual": None if window is None else [*dual, *layout.WINDOW.of(window)],
            "jumped": state.journal.jumped,
            "chance": _chance(state.chance),
            "names": state.arms.names,
            "prices": [arm.price.row() for arm in arms],
            "arms": [layout.HEAD.of(arm) for arm in arms],
            "since": state.since.pack(),
            **({"rests": rests} if any(rests := layout.RESTS.of(state)) else {}),
            **registered.head(state),
        }
    )


def _arm(arm: Arm) -> bytes:
    """Return the numbers of an arm that rewards change."""
    suspicion = () if arm.suspicion is None else layout.SUSPICION.of(arm.suspicion)
    numbers = [*layout.REWARDS.of(arm), len(suspicion), *suspicion]
    return packed(numbers, arm.rewards.kept)


def _costs(arm: Arm) -> bytes:
    """Return the numbers of an arm that bills change."""
    return packed(layout.COSTS.of(arm), arm.costs.regression.kept)


def _chance(chance: Chances) -> Json:
    if isinstance(chance, Chance):
        return chance.state
    state = chance.bit_generator.state
    # 128 bits are more than JSON's integers.
    words = f"{state['state']['state']:x}", f"{state['state']['inc']:x}"
    return [*words, state["has_uint32"], state["uinteger"]]


def piece_names(state: RouterState) -> list[str]:
    """Return the names of all pieces of a router, without those of requests."""
    arms = state.arms
    return [
        CONFIG,
        HEAD_PIECE,
        SAMPLE_PIECE,
        arms.rewards.name,
        arms.bills.name,
        *arms.names,
        *(costs.regression.piece for costs in arms.costs),
        *(() if arms.window is None else arms.window.pieces),
        *(name for name, part_of in JSON_PARTS.items() if part_of(state).values() is not None),
        *(piece for one in state.capabilities for piece in one.pieces),
    ]


def _json(value: Json | None) -> bytes | None:
    return None if value is None else orjson.dumps(value)


def pack_pieces(state: RouterState) -> dict[str, bytes]:
    """Return every piece of a router by name, without those of requests."""
    names = piece_names(state)
    found = zip(names, pack(state, names), strict=True)
    return {name: piece for name, piece in found if piece is not None}


def pack_piece(state: RouterState, name: str) -> bytes | None:
    """Return a piece by its name; None if the router does not have the piece, or has it no
    longer.
    """
    return pack(state, [name])[0]


def pack(state: RouterState, names: Iterable[str]) -> list[bytes | None]:
    """Return the pieces of these names, in order; see `pack_piece`."""
    bodies = [(_body(state, name) or _of_capabilities(state, name)) for name in names]
    return [None if body is None else frame(body) for body in bodies]


def _body(state: RouterState, name: str) -> bytes | None:
    arms = state.arms
    body: bytes | None = None
    if name == HEAD_PIECE:
        body = _head(state)
    elif (arm := arms.find(name)) is not None:
        body = _arm(arm)
    elif name.startswith(_COST_PIECE):
        arm = arms.find(name.removeprefix(_COST_PIECE))
        body = None if arm is None else _costs(arm)
    elif (block := _BLOCKS.get(name)) is not None:
        window = arms.window
        held = window is not None and block * BLOCK < window.size
        body = window.pack(block) if window is not None and held else None
    elif name == SAMPLE_PIECE:
        body = arms.sample.pack()
    elif name in (arms.rewards.name, arms.bills.name):
        body = pack_prior(arms.rewards if name == arms.rewards.name else arms.bills)
    elif (part_of := JSON_PARTS.get(name)) is not None:
        body = _json(part_of(state).values())
    elif name == CONFIG:
        body = config_body(state.config)
    return body


def _of_capabilities(state: RouterState, name: str) -> bytes | Framed | None:
    packed_parts = (one.pack(name) for one in state.capabilities)
    return next((part for part in packed_parts if part is not None), None)
