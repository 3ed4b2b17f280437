"""A router's state put together from its pieces: the inverse of `state_pieces`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from router_state import registered
from router_state.changes import CONFIG, HEAD
from router_state.errors import DamagedState
from router_state.kernel import SAMPLE_PIECE, TAILS, Arm, Chance, Regression
from router_state.kernel.learning.suspicion import Suspicion
from router_state.pacing.dollar_dual import DollarDual
from router_state.pacing.ema_pacer import EmaPacer
from router_state.packing import framing, layout
from router_state.packing.framing import body_of, converted, floats, opened, reader_of
from router_state.packing.prior_bytes import restore_prior
from router_state.policies.by_profile import POLICIES
from router_state.router import RouterState
from router_state.since import Since
from router_state.state.config_bytes import config_from
from router_state.state.head_fields import Head, Words
from router_state.state.state_pieces import JSON_PARTS, piece_names

Pieces = Callable[[str], bytes | None]
"""Returns a framed piece by its name, None where there is none."""
Bodies = Callable[[str], bytes]
"""Returns the body of a piece by its name, b"" where there is none. Raises DamagedState."""


def unpack(piece: Pieces, open_commitments: Mapping[str, float]) -> RouterState:
    """Put a router together from its pieces.

    Args:
        open_commitments: {request_id: decided_at} of requests whose bill is awaited, in order of
            their seq.

    Raises:
        DamagedState: a piece is damaged, missing or of a format that this program does not know.
    """

    def body(name: str) -> bytes:
        data = piece(name)
        return b"" if data is None else body_of(data, _said(name))

    # All pieces of a router are written in one format, so the head's format is that of every
    # piece.
    number, _ = opened(piece(HEAD) or b"", "head")
    state = reader_of(number, READERS, "head")(body)
    state.open_commitments = dict(open_commitments)
    state.journal.pieces.clear()
    if number != framing.FORMAT:
        state.journal.pieces.update(piece_names(state))
    return state


def read(body: Bodies) -> RouterState:
    """Return the router in pieces of the present format. Raises DamagedState."""
    state, head = RouterState(config_from(body(CONFIG))), Head.read(body(HEAD))
    arms, state.policy = state.arms, POLICIES[state.config.profile]
    layout.COUNTERS.put(state, head.counters)
    layout.RESTS.put(state, head.rests)
    state.since = Since.unpack(head.since)
    _restore_chance(state, head)
    # All names are read first: each arm's arrays are views into one stack, whose size must be
    # known.
    arms.restore(
        [
            Arm(name, arms.bills, row.price, state.journal)
            for name, row in zip(head.names, head.prices, strict=True)
        ]
    )
    for arm, numbers in zip(arms, head.arms, strict=True):
        layout.HEAD.put(arm, numbers)
        _restore_arm(arm, body(arm.rewards.piece))
        _restore_costs(arm, body(arm.costs.regression.piece))
    arms.derive()
    registered.declare(state, state.config, now=state.latest)
    registered.begin(state)
    # The window is restored first: it begins empty, and so does what capabilities store by its
    # slots.
    arms.begin_window(solved=head.dual is not None)
    for one in state.capabilities:
        one.restore(head.others, body)
    registered.end(state)
    _restore_pacer(state, head, body)
    for prior in (arms.rewards, arms.bills):
        restore_prior(prior, body(prior.name))
    arms.sample.unpack(body(SAMPLE_PIECE), len(arms))
    for name, part_of in JSON_PARTS.items():
        if kept_part := body(name):
            part_of(state).restore(kept_part)
    state.journal.jumped = head.jumped
    return state


READERS: Mapping[int, Callable[[Bodies], RouterState]] = {1: read}
"""Readers of a router's pieces by the number of their format: the present one and the one
before."""


def _said(name: str) -> str:
    """Return a piece's name in words for an error."""
    return name.removeprefix("\x1f")


def _restore_chance(state: RouterState, head: Head) -> None:
    chance = state.chance = state.policy.chance(state, state.config)
    if isinstance(chance, Chance):
        chance.state = converted(head.chance, int, "head: chance") % 2**64
        return
    word, inc, has_uint32, uinteger = converted(head.chance, Words, "head: chance")
    chance.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(word, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _restore_pacer(state: RouterState, head: Head, body: Bodies) -> None:
    arms, ema, dual = state.arms, head.ema, head.dual
    pacer = state.policy.pacer(state, state.config)
    solved = pacer.solves or arms.beside is not None
    if isinstance(pacer, EmaPacer) != (ema is not None) or solved != (dual is not None):
        raise DamagedState("head: paced otherwise than declared")
    if ema is not None:
        layout.EMA.put(pacer, ema)
    if arms.window is not None and dual is not None:
        size = len(layout.DUAL)
        if isinstance(pacer, DollarDual):
            layout.DUAL.put(pacer, dual[:size])
        layout.WINDOW.put(arms.window, dual[size:])
        for block, name in enumerate(arms.window.pieces):
            arms.window.unpack(block, body(name))
    state.pacer = pacer


def _restore_arm(arm: Arm, data: bytes) -> None:
    size = len(layout.REWARDS)
    values = _values(data, arm.rewards, size + 1, size + 1 + len(layout.SUSPICION))
    layout.REWARDS.put(arm, values[:size].tolist())
    behind = size + 1
    if values[size] == len(layout.SUSPICION):
        arm.suspicion = Suspicion(0.0, 0, 0.0, 0.0, 0)
        behind += len(layout.SUSPICION)
        layout.SUSPICION.put(arm.suspicion, values[size + 1 : behind].tolist())
    elif values[size] != 0.0:
        raise DamagedState(f"{arm.name}: {values[size]} numbers of a suspicion")
    arm.rewards.restore(values[behind:])


def _restore_costs(arm: Arm, data: bytes) -> None:
    size = len(layout.COSTS)
    values = _values(data, arm.costs.regression, size, size)
    layout.COSTS.put(arm, values[:size].tolist())
    arm.costs.regression.restore(values[size:])


def _values(data: bytes, regression: Regression, least: int, most: int) -> np.ndarray:
    d, what = regression.d, _said(regression.piece)
    arrays = d * (d + 1) // 2 + d
    return floats(data, what, least=least + arrays, most=most + arrays + TAILS * d)
