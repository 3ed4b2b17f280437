"""The state as bytes and back, equal to the bit: JSON for what is small, arrays for what is large,
never pickle.

A router is kept in pieces, so that an event writes only what it changed: its configuration, its
`head` (counters, clock and the scalars of every arm), array pieces (two per arm, and blocks of the
window) and one piece per request. Each begins with the version of its format and a checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter

import orjson

from router_state import migration
from router_state.arm import SCALARS
from router_state.arms import Arms
from router_state.books import Forgotten
from router_state.caps import Bucket
from router_state.config import Price
from router_state.config_bytes import pack_config, unpack_config
from router_state.cost_model import cost_piece
from router_state.doubt import PIECE as DRAW
from router_state.dual_pacer import DualPacer
from router_state.errors import CorruptSnapshot
from router_state.familiar import Familiar
from router_state.framing import Json, body_of, frame, loads, reading
from router_state.journal import CONFIG, HEAD
from router_state.pacing import EmaPacer
from router_state.prompt_tokens import PIECE as TOKENS
from router_state.since import Since
from router_state.state import RouterState
from router_state.window import PIECES, Window

COUNTERS = (
    "t",
    "seq",
    "settled",
    "expired",
    "rewards_applied",
    "spend_usd",
    "committed_usd",
    "unmatched_cost_usd",
    "latest",
    "unreachable",
)
"""Of the books, in the order of a head, for good."""

_COUNTERS_OF = attrgetter(*COUNTERS)
"""Reads all of them in one call: a dozen attributes a head, and every event writes one."""
_FORGOTTEN_OF = attrgetter(*(part.name for part in fields(Forgotten)))
"""The same of `Forgotten`."""
_BLOCKS = {name: block for block, name in enumerate(PIECES)}
"""Which block of the window a piece holds."""
_COST_PIECE = cost_piece("")
"""What the name of a cost model's piece begins with."""


def pack_head(state: RouterState) -> bytes:
    """Return counters, pacer, caps, random generator and the scalars of every arm."""
    return frame(orjson.dumps(head_of(state)))


def head_of(state: RouterState) -> dict[str, object]:
    """Return what the head holds."""
    arms, rng = state.arms, state.rng.bit_generator.state
    scalars, prices, costs, familiar = [], [], [], []
    for arm in arms:
        scalars.append(arm.scalars())
        prices.append([arm.price.input_price_per_m, arm.price.output_price_per_m])
        costs.append(arm.costs.scalars())
        familiar.append(arm.costs.familiar.pack())
    return {
        "counters": _COUNTERS_OF(state),
        "forgotten": _FORGOTTEN_OF(state.forgotten),
        "pacer": state.pacer.pack(),
        "buckets": [[bucket.left_usd, bucket.at, bucket.exhausted] for bucket in state.buckets],
        "rng": [
            f"{rng['state']['state']:x}",
            f"{rng['state']['inc']:x}",
            rng["has_uint32"],
            rng["uinteger"],
        ],
        "names": arms.names,
        "prices": prices,
        "arms": list(zip(*scalars, strict=True)) or [()] * len(SCALARS),
        "costs": costs,
        "familiar": familiar,
        "since": state.since.pack(),
        **paid_of(arms),
    }


def unpack(piece: Callable[[str], bytes], open_commitments: Mapping[str, float]) -> RouterState:
    """Put a router together from its pieces.

    Args:
        piece: returns a piece by its name, b"" where there is none.
        open_commitments: {request_id: decided_at} of requests whose bill is awaited, in order of
            their seq.

    Raises:
        CorruptSnapshot: a piece is damaged, missing or of another version.
    """
    state = RouterState.start(unpack_config(piece(CONFIG)))
    with reading("head"):
        _restore(state, loads(piece(HEAD)), piece)
    state.open_commitments = dict(open_commitments)
    return state


def _restore(state: RouterState, body: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
    restore_counters(state, dict(zip(COUNTERS, body["counters"], strict=True)))
    restore_rng(state, body["rng"])
    state.buckets = [
        Bucket(cap, *left) for cap, left in zip(state.config.caps, body["buckets"], strict=True)
    ]
    state.forgotten = Forgotten(*body["forgotten"])
    # A program that does not know of it has moved the state: nobody knows in which order.
    state.since = Since.unpack(body["since"]) if "since" in body else Since.unknown(seq=state.seq)
    arms = state.arms
    scalars = zip(*body["arms"], strict=True)
    for name, (i, o), values in zip(body["names"], body["prices"], scalars, strict=True):
        arms.restore(name, Price(i, o), values)
    # All names first: each arm's arrays are views into one stack, whose size must be known.
    arms.make_room()
    for arm in arms:
        arm.unpack(body_of(piece(arm.name)))
        arm.costs.unpack(body_of(piece(arm.costs.name)))
    arms.derive()
    _restore_pacer(state, body, piece)
    # Written by a program whose arms learned alone: they begin to learn together here.
    if "costs" not in body:
        migration.share(state, came_back=piece(DRAW) != b"")
        state.journal.pieces.update(piece_names(state))
        return
    for arm, packed in zip(arms, body["costs"], strict=True):
        arm.costs.restore_scalars(packed)
    for arm, known in zip(arms, body.get("familiar", ()), strict=False):  # not kept at first
        arm.costs.familiar = Familiar.unpack(known)
    for arm, paid in zip(arms, body.get("paid", ()), strict=False):
        arm.costs.paid = paid
    for pool in arms.pools:
        pool.unpack(body_of(piece(pool.name)))
    arms.doubt.unpack(body_of(piece(DRAW)), len(arms))
    _restore_tokens(state, piece(TOKENS))


def _restore_tokens(state: RouterState, data: bytes) -> None:
    """Fill in what is known of prompts' lengths. Where a program that does not know of them has
    decided since, costs are of whole bills again: they are counted anew."""
    kept = loads(data) if data else None
    if kept is not None and kept["seq"] == state.seq:
        restore_tokens(state.arms, kept)


def paid_of(arms: Arms) -> dict[str, Json]:
    """Return which shares of the arms' bills were not of nothing, where any was."""
    paid = [costs.paid for costs in arms.costs]
    return {"paid": paid} if paid and min(paid) < 1.0 else {}


def tokens_of(arms: Arms) -> dict[str, Json]:
    """Return what is kept of prompts' lengths, and of what their tokens cost."""
    shares = {arm.name: arm.costs.input_share for arm in arms}
    return {**arms.tokens.values(), "shares": shares}


def restore_tokens(arms: Arms, kept: Json) -> None:
    """Invert `tokens_of`."""
    arms.tokens.restore(kept)
    for arm in arms:
        if arm.name in kept["shares"]:  # else an older program has let it join
            arm.costs.input_share = float(kept["shares"][arm.name])


def restore_counters(state: RouterState, counters: Mapping[str, Json]) -> None:
    """Fill the counters in; "unreachable" is the pacer's, see `restore_pacer`."""
    for name in COUNTERS:
        if name != "unreachable":
            setattr(state, name, counters[name])


def restore_rng(state: RouterState, packed: Sequence[Json]) -> None:
    """Put the random generator where it was."""
    seed, inc, has_uint32, uinteger = packed
    state.rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(seed, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _restore_pacer(
    state: RouterState, body: Mapping[str, Json], piece: Callable[[str], bytes]
) -> None:
    packed = body["pacer"]
    window = restore_pacer(
        state, packed, unreachable=dict(zip(COUNTERS, body["counters"], strict=True))["unreachable"]
    )
    if window is not None:
        for block, name in enumerate(window.pieces):
            window.unpack(block, body_of(piece(name)))


def restore_pacer(
    state: RouterState, packed: Mapping[str, Json] | None, *, unreachable: bool
) -> Window | None:
    """Give a state the pacer that was packed; return its window, if it has one, whose contexts are
    still to be filled in."""
    state.journal.jumped = False
    budget = state.config.budget_usd_per_request
    if packed is None or budget is None:
        if packed is not None or budget is not None:
            raise CorruptSnapshot("paced without a budget, or not with one")
        return None
    if "ema" in packed:
        lambda_t, cost_ema_usd = packed["ema"]
        state.pacer = EmaPacer(budget, lambda_t=lambda_t, cost_ema_usd=cost_ema_usd)
        return None
    pacer = state.new_dual_pacer(budget)
    pacer.restore(packed["dual"], idle=packed.get("idle", 0))  # not kept at first
    pacer.unreachable = unreachable
    pacer.window.size, pacer.window.next = packed["size"], packed["next"]
    state.pacer = pacer
    return pacer.window


def piece_names(state: RouterState) -> list[str]:
    """Return the names of all pieces that a router has, its requests apart."""
    arms = state.arms
    names = [
        CONFIG,
        HEAD,
        DRAW,
        *(pool.name for pool in arms.pools),
        *arms.names,
        *(costs.name for costs in arms.costs),
    ]
    if isinstance(state.pacer, DualPacer):
        names += state.pacer.window.pieces
    if arms.tokens.count:
        names.append(TOKENS)
    return names


def pack_pieces(state: RouterState) -> dict[str, bytes]:
    """Return every piece of a router by name, its requests apart."""
    packed = {name: pack_piece(state, name) for name in piece_names(state)}
    return {name: piece for name, piece in packed.items() if piece is not None}


def pack_piece(state: RouterState, name: str) -> bytes | None:  # noqa: PLR0911
    """Return a piece by its name; None where the router has none of it (any more)."""
    if name == HEAD:
        return pack_head(state)
    arms = state.arms
    if (arm := arms.find(name)) is not None:
        return frame(arm.pack())
    if name == CONFIG:
        return pack_config(state.config)
    if name == DRAW:
        return frame(arms.doubt.pack())
    if name == TOKENS:
        return frame(orjson.dumps({**tokens_of(arms), "seq": state.seq}))
    for pool in arms.pools:
        if name == pool.name:
            return frame(pool.pack())
    if (block := _BLOCKS.get(name)) is not None:
        pacer = state.pacer
        if isinstance(pacer, DualPacer) and name in pacer.window.pieces:
            return frame(pacer.window.pack(block))
        return None
    arm = arms.find(name.removeprefix(_COST_PIECE))
    return None if arm is None else frame(arm.costs.pack())
