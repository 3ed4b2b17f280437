"""A router's state put together from its pieces: the inverse of `state_pieces`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from router_state import registered
from router_state.changes import CONFIG, HEAD
from router_state.config import Price
from router_state.errors import CorruptSnapshot
from router_state.kernel import SAMPLE_PIECE, TAILS, Arm, Chance, Regression
from router_state.kernel.learning.suspicion import Suspicion
from router_state.pacing.dollar_dual import DollarDual
from router_state.pacing.ema_pacer import EmaPacer
from router_state.packing import layout
from router_state.packing.framing import Json, body_of, floats, loads, reading, version_of
from router_state.packing.prior_bytes import restore_prior
from router_state.policies.by_profile import POLICIES
from router_state.router import RouterState
from router_state.since import Since
from router_state.state import upgrade
from router_state.state.config_bytes import unpack_config
from router_state.state.state_pieces import JSON_PARTS, piece_names

Pieces = Callable[[str], bytes]
"""Returns a piece by its name, b"" where there is none."""


def unpack(piece: Pieces, open_commitments: Mapping[str, float]) -> RouterState:
    """Put a router together from its pieces.

    Args:
        open_commitments: {request_id: decided_at} of requests whose bill is awaited, in order of
            their seq.

    Raises:
        CorruptSnapshot: a piece is damaged, missing or of another version.
    """
    older = version_of(piece(HEAD)) in upgrade.OLDER
    with reading("head"):
        if older:
            piece = upgrade.upgraded(piece)
        state = RouterState(unpack_config(piece(CONFIG)))
        _restore(state, loads(piece(HEAD)), piece)
    state.open_commitments = dict(open_commitments)
    if older:
        state.journal.pieces.update(piece_names(state))
    return state


def _restore(state: RouterState, head: Mapping[str, Json], piece: Pieces) -> None:
    arms, state.policy = state.arms, POLICIES[state.config.profile]
    layout.COUNTERS.put(state, head["counters"])
    layout.RESTS.put(state, head.get("rests", (0.0, 0.0)))
    state.since = Since.unpack(head["since"])
    _restore_chance(state, head["chance"] if "chance" in head else head["rng"])
    # All names first: each arm's arrays are views into one stack, whose size must be known.
    arms.restore(
        [
            Arm(name, arms.bills, Price(*price), state.journal)
            for name, price in zip(head["names"], head["prices"], strict=True)
        ]
    )
    for arm, numbers in zip(arms, head["arms"], strict=True):
        layout.HEAD.put(arm, numbers)
        _restore_arm(arm, body_of(piece(arm.rewards.piece)))
        _restore_costs(arm, body_of(piece(arm.costs.regression.piece)))
    arms.derive()
    registered.declare(state, state.config, now=state.latest)
    registered.begin(state)
    # First: a window begins empty, and with it what capabilities keep by its slots.
    arms.begin_window(solved=head["dual"] is not None)
    for one in state.capabilities:
        one.restore(head, lambda name: body_of(piece(name)) if piece(name) else b"")
    registered.end(state)
    _restore_pacer(state, head, piece)
    for prior in (arms.rewards, arms.bills):
        restore_prior(prior, body_of(piece(prior.name)))
    arms.sample.unpack(body_of(piece(SAMPLE_PIECE)), len(arms))
    for name, part_of in JSON_PARTS.items():
        if kept_part := piece(name):
            part_of(state).restore(loads(kept_part))
    state.journal.pieces.clear()
    state.journal.jumped = bool(head["jumped"])


def _restore_chance(state: RouterState, kept: Json) -> None:
    chance = state.chance = state.policy.chance(state, state.config)
    if isinstance(chance, Chance):
        # Before format 6 it was numpy's.
        chance.state = (int(kept[0], 16) if isinstance(kept, list) else int(kept)) % 2**64
        return
    word, inc, has_uint32, uinteger = kept
    chance.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(word, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _restore_pacer(state: RouterState, head: Mapping[str, Json], piece: Pieces) -> None:
    arms, ema, dual = state.arms, head["ema"], head["dual"]
    pacer = state.policy.pacer(state, state.config)
    solved = pacer.solves or arms.beside is not None
    if isinstance(pacer, EmaPacer) != (ema is not None) or solved != (dual is not None):
        raise CorruptSnapshot("paced otherwise than declared")
    if ema is not None:
        layout.EMA.put(pacer, ema)
    if arms.window is not None:
        size = len(layout.DUAL)
        if isinstance(pacer, DollarDual):
            layout.DUAL.put(pacer, dual[:size])
        layout.WINDOW.put(arms.window, dual[size:])
        for block, name in enumerate(arms.window.pieces):
            arms.window.unpack(block, body_of(piece(name)))
    state.pacer = pacer


def _restore_arm(arm: Arm, data: bytes) -> None:
    size = len(layout.REWARDS)
    values = _values(data, arm.rewards, size + 1, size + 1 + len(layout.SUSPICION))
    layout.REWARDS.put(arm, values[:size].tolist())
    behind = size + 1 + int(values[size])
    if behind > size + 1:
        arm.suspicion = Suspicion(0.0, 0, 0.0, 0.0, 0)
        layout.SUSPICION.put(arm.suspicion, values[size + 1 : behind].tolist())
    arm.rewards.restore(values[behind:])


def _restore_costs(arm: Arm, data: bytes) -> None:
    size = len(layout.COSTS)
    values = _values(data, arm.costs.regression, size, size)
    layout.COSTS.put(arm, values[:size].tolist())
    arm.costs.regression.restore(values[size:])


def _values(data: bytes, regression: Regression, least: int, most: int) -> np.ndarray:
    d = regression.d
    arrays = d * (d + 1) // 2 + d
    return floats(data, least=least + arrays, most=most + arrays + TAILS * d)
