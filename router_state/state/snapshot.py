"""The state as bytes and back, equal to the bit: JSON for what is small, arrays for what is large,
never pickle.

A router is kept in pieces, so that an event writes only what it changed. These are its
configuration, its `head` (counters, pacer, clock and prices), two pieces per arm (what rewards and
what bills change), one of each shared prior, the posterior sample, blocks of the window and one
piece per request. Each begins with the version of its format and a checksum. `layout` declares the
numbers in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import orjson

from router_state import sessions
from router_state.arm import Arm
from router_state.availability import PIECE as AVAILABILITY
from router_state.change.suspicion import Suspicion
from router_state.changes import CONFIG
from router_state.changes import HEAD as HEAD_PIECE
from router_state.config import Price
from router_state.costs.caching import PIECE as CACHING
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.errors import CorruptSnapshot
from router_state.kernel import SAMPLE_PIECE, TAILS, Chance, Regression, SharedPrior, cost_piece
from router_state.latency.timing import PIECE as LATENCY
from router_state.latency.timing import Timing
from router_state.pacing.dollar_dual import DollarDual
from router_state.pacing.ema import EmaPacer
from router_state.pacing.window import PIECES
from router_state.periods.declared import HOURS
from router_state.periods.ledger import PIECE as PERIODS
from router_state.periods.ledger import Ledger
from router_state.periods.traffic import SHAPE
from router_state.policies.policy import POLICIES
from router_state.since import Since
from router_state.state import layout, upgrade
from router_state.state.caps import Bucket
from router_state.state.config_bytes import pack_config, unpack_config
from router_state.state.framing import (
    Json,
    body_of,
    floats,
    frame,
    loads,
    packed,
    reading,
    version_of,
)
from router_state.state.router import Chances, RouterState

Pieces = Callable[[str], bytes]
"""Returns a piece by its name, b"" where there is none."""
_BLOCKS = {name: block for block, name in enumerate(PIECES)}
"""Block of the window that a piece holds, by its name."""
_COST_PIECE = cost_piece("")
"""Beginning of the names of cost models' pieces."""


def _head(state: RouterState) -> bytes:
    """Return counters, pacer, caps, random generator, and what decisions change of every arm."""
    arms, pacer = state.arms, state.pacer
    return orjson.dumps(
        {
            "counters": layout.COUNTERS.of(state),
            "ema": layout.EMA.of(pacer) if isinstance(pacer, EmaPacer) else None,
            "dual": layout.DUAL.of(pacer) if isinstance(pacer, DollarDual) else None,
            "jumped": state.journal.jumped,
            "buckets": [[bucket.left_usd, bucket.at, bucket.exhausted] for bucket in state.buckets],
            "chance": _chance(state.chance),
            "names": arms.names,
            "prices": [[arm.price.input_price_per_m, arm.price.output_price_per_m] for arm in arms],
            "arms": [layout.HEAD.of(arm) for arm in arms],
            "since": state.since.pack(),
            **({"sessions": len(state.sessions)} if state.sessions.pieces else {}),
        }
    )


def _arm(arm: Arm) -> bytes:
    """Return what rewards change of an arm."""
    suspicion = [] if arm.suspicion is None else layout.SUSPICION.of(arm.suspicion)
    numbers = [*layout.REWARDS.of(arm), len(suspicion), *suspicion]
    return packed(numbers, arm.rewards.kept)


def _restore_arm(arm: Arm, data: bytes) -> None:
    size = len(layout.REWARDS)
    values = _values(data, arm.rewards, size + 1, size + 1 + len(layout.SUSPICION))
    layout.REWARDS.put(arm, values[:size].tolist())
    behind = size + 1 + int(values[size])
    if behind > size + 1:
        arm.suspicion = Suspicion(0.0, 0, 0.0, 0.0, 0)
        layout.SUSPICION.put(arm.suspicion, values[size + 1 : behind].tolist())
    arm.rewards.restore(values[behind:])


def _costs(arm: Arm) -> bytes:
    """Return what bills change of an arm."""
    return packed(layout.COSTS.of(arm), arm.costs.regression.kept)


def _restore_costs(arm: Arm, data: bytes) -> None:
    size = len(layout.COSTS)
    values = _values(data, arm.costs.regression, size, size)
    layout.COSTS.put(arm, values[:size].tolist())
    arm.costs.regression.restore(values[size:])


def _values(data: bytes, regression: Regression, least: int, most: int) -> np.ndarray:
    d = regression.d
    arrays = d * (d + 1) // 2 + d
    return floats(data, least=least + arrays, most=most + arrays + TAILS * d)


def _prior(prior: SharedPrior) -> bytes:
    return packed(layout.SHARED.of(prior), prior.mean, prior.center)


def _restore_prior(prior: SharedPrior, data: bytes) -> None:
    size, d = len(layout.SHARED), prior.d
    values = floats(data, least=size + 2 * d, most=size + 2 * d)
    layout.SHARED.put(prior, values[:size].tolist())
    prior.mean, prior.center = values[size : size + d].copy(), values[size + d :].copy()


def unpack(piece: Pieces, open_commitments: Mapping[str, float]) -> RouterState:
    """Put a router together from its pieces.

    Args:
        open_commitments: {request_id: decided_at} of requests whose bill is awaited, in order of
            their seq.

    Raises:
        CorruptSnapshot: a piece is damaged, missing or of another version.
    """
    older = version_of(piece(HEAD_PIECE)) in upgrade.OLDER
    with reading("head"):
        if older:
            piece = upgrade.upgraded(piece)
        state = RouterState.start(unpack_config(piece(CONFIG)))
        _restore(state, loads(piece(HEAD_PIECE)), piece)
    state.open_commitments = dict(open_commitments)
    if older:
        state.journal.pieces.update(piece_names(state))
    return state


def _restore(state: RouterState, head: Mapping[str, Json], piece: Pieces) -> None:
    arms = state.arms
    layout.COUNTERS.put(state, head["counters"])
    state.since = Since.unpack(head["since"])
    _restore_chance(state, head["chance"] if "chance" in head else head["rng"])
    if state.config.spending is not None:
        state.ledger = Ledger(state.config.spending, state.journal)
        week = floats(body_of(piece(SHAPE)), least=2 * HOURS, most=2 * HOURS)
        state.ledger.restore(loads(piece(PERIODS)), week)
    state.buckets = [
        Bucket(cap, *left) for cap, left in zip(state.config.caps, head["buckets"], strict=True)
    ]
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
    _restore_timing(state, piece)
    _restore_pacer(state, head, piece)
    for prior in (arms.rewards, arms.bills):
        _restore_prior(prior, body_of(piece(prior.name)))
    arms.sample.unpack(body_of(piece(SAMPLE_PIECE)), len(arms))
    if tokens := piece(TOKENS):
        arms.tokens.restore(loads(tokens))
    if caching := piece(CACHING):
        arms.caching.restore(loads(caching))
    talks = head.get("sessions") or state.config.caches
    for number in range(sessions.DRAWERS) if talks else ():
        if drawer := piece(sessions.piece_of(number)):
            state.sessions.restore(number, loads(drawer))
    if health := piece(AVAILABILITY):
        state.availability.restore(loads(health))
    state.journal.pieces.clear()
    state.journal.jumped = bool(head["jumped"])


def _restore_timing(state: RouterState, piece: Pieces) -> None:
    state.arms.declare_latency(state.config.latency)
    timing = state.arms.timing
    if timing is not None:
        timing.restore(lambda name: body_of(piece(name)))
        _restore_prior(timing.prior, body_of(piece(timing.prior.name)))


def _chance(chance: Chances) -> Json:
    if isinstance(chance, Chance):
        return chance.state
    state = chance.bit_generator.state
    # 128 bits are more than JSON's integers.
    words = f"{state['state']['state']:x}", f"{state['state']['inc']:x}"
    return [*words, state["has_uint32"], state["uinteger"]]


def _restore_chance(state: RouterState, kept: Json) -> None:
    chance = state.chance = POLICIES[state.config.profile].chance(state, state.config)
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
    pacer = POLICIES[state.config.profile].pacer(state, state.config)
    for kind, numbers, packed_numbers in (
        (EmaPacer, layout.EMA, head["ema"]),
        (DollarDual, layout.DUAL, head["dual"]),
    ):
        if isinstance(pacer, kind) != (packed_numbers is not None):
            raise CorruptSnapshot("paced otherwise than declared")
        if packed_numbers is not None:
            numbers.put(pacer, packed_numbers)
    if isinstance(pacer, DollarDual):
        for block, name in enumerate(pacer.window.pieces):
            pacer.window.unpack(block, body_of(piece(name)))
    state.pacer = pacer


def piece_names(state: RouterState) -> list[str]:
    """Return the names of all pieces that a router has, its requests apart."""
    arms = state.arms
    return [
        CONFIG,
        HEAD_PIECE,
        SAMPLE_PIECE,
        arms.rewards.name,
        arms.bills.name,
        *arms.names,
        *(costs.regression.piece for costs in arms.costs),
        *state.pacer.pieces,
        *([TOKENS] if arms.tokens.count else []),
        *([AVAILABILITY] if state.availability.values() is not None else []),
        *([CACHING] if arms.caching.values() is not None else []),
        *state.sessions.pieces,
        *(arms.timing.pieces if arms.timing is not None else ()),
        *((PERIODS, SHAPE) if state.ledger is not None else ()),
    ]


def _timing(timing: Timing | None, name: str) -> bytes | None:
    if timing is None:
        return None
    if name == timing.prior.name:
        return _prior(timing.prior)
    return timing.pack(name)


def pack_pieces(state: RouterState) -> dict[str, bytes]:
    """Return every piece of a router by name, its requests apart."""
    packed_pieces = {name: pack_piece(state, name) for name in piece_names(state)}
    return {name: piece for name, piece in packed_pieces.items() if piece is not None}


def pack_piece(state: RouterState, name: str) -> bytes | None:
    """Return a piece by its name; None where the router has none of it (any more)."""
    if name == CONFIG:
        return pack_config(state.config)
    body = _body(state, name)
    return None if body is None else frame(body)


JSON_PIECES: Mapping[str, Callable[[RouterState], Json | None]] = {
    TOKENS: lambda state: state.arms.tokens.values(),
    CACHING: lambda state: state.arms.caching.values(),
    AVAILABILITY: lambda state: state.availability.values(),
    PERIODS: lambda state: None if state.ledger is None else state.ledger.pack(),
}
"""Pieces that are JSON, None where there is none of it, by their names."""


def _body(state: RouterState, name: str) -> bytes | None:
    arms = state.arms
    if name == HEAD_PIECE:
        body: bytes | None = _head(state)
    elif (arm := arms.find(name)) is not None:
        body = _arm(arm)
    elif name == SAMPLE_PIECE:
        body = arms.sample.pack()
    elif name in (arms.rewards.name, arms.bills.name):
        body = _prior(arms.rewards if name == arms.rewards.name else arms.bills)
    elif name in JSON_PIECES or sessions.holds(name):
        pack = JSON_PIECES.get(name)
        value = state.sessions.pack(name) if pack is None else pack(state)
        body = None if value is None else orjson.dumps(value)
    elif name.startswith(LATENCY):
        body = _timing(arms.timing, name)
    elif name == SHAPE:
        body = None if state.ledger is None else packed(state.ledger.traffic.week())
    elif (block := _BLOCKS.get(name)) is not None:
        pacer = state.pacer
        held = isinstance(pacer, DollarDual) and name in pacer.pieces
        body = pacer.window.pack(block) if held and isinstance(pacer, DollarDual) else None
    else:
        arm = arms.find(name.removeprefix(_COST_PIECE))
        body = None if arm is None else _costs(arm)
    return body
