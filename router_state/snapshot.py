"""The state as bytes and back, equal to the bit: JSON for what is small, arrays for what is large, never pickle.

A router is kept in pieces, so that an event writes only what it changed: its configuration, its `head` (counters, clock and the
scalars of every arm), array pieces (two per arm, and blocks of the window) and one piece per request. Each begins with the version
of its format and a checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple
from typing import Any

import orjson
from msgspec import structs

from router_state import pieces
from router_state.accounts import cost_piece
from router_state.caps import Bucket
from router_state.config import Cap, Knobs, ModelConfig, Price, RouterConfig
from router_state.dual import DualPacer
from router_state.framing import body_of, frame, loads, reading
from router_state.pacing import EmaPacer
from router_state.record import Applied, Bill, Candidates, Label, RequestRecord
from router_state.state import Forgotten, RouterState
from router_state.window import BLOCK, PIECES, Window

ARM_SCALARS = ("decay", "forgotten", "last_update", "last_played", "pulls_left", "pending", "ratio", "bills", "retired_at")
COUNTERS = (
    "t", "seq", "settled", "expired", "rewards_applied", "spend_usd", "committed_usd", "unmatched_cost_usd", "latest",
    "unreachable",
)  # fmt: skip

RECORD_SCALARS = (
    "seq", "model", "reason", "propensity", "expected_reward", "expected_cost_usd", "lambda_t", "config_offset", "decided_at",
    "offset",
)  # fmt: skip
SCALARS = len(RECORD_SCALARS)


def pack_config(config: RouterConfig) -> bytes:
    """Return a configuration without the priors, which have done their work when it is in force."""
    models = {
        name: [model.price.input_price_per_m, model.price.output_price_per_m, model.onboarding_pulls]
        for name, model in config.models.items()
    }
    return frame(
        orjson.dumps(
            {
                "models": models,
                "budget": config.budget_usd_per_request,
                "dimensions": config.dimensions,
                "profile": config.profile,
                "knobs": asdict(config.knobs),
                "caps": [asdict(cap) for cap in config.caps],
                "offset": config.offset,
                "applied": config.applied,
            }
        )
    )


def unpack_config(data: bytes) -> RouterConfig:
    """Invert `pack_config`. Raises CorruptSnapshot."""
    with reading("configuration"):
        body = loads(data)
        costs, rewards = body["applied"]
        return RouterConfig(
            models={name: ModelConfig(Price(i, o), None, pulls) for name, (i, o, pulls) in body["models"].items()},
            budget_usd_per_request=body["budget"],
            dimensions=body["dimensions"],
            profile=body["profile"],
            knobs=Knobs(**body["knobs"]),
            caps=tuple(Cap(**cap) for cap in body["caps"]),
            offset=body["offset"],
            applied=(costs, rewards),
        )


def pack_head(state: RouterState) -> bytes:
    """Return counters, pacer, caps, random generator and the scalars of every arm."""
    arms = state.arms
    rng = state.rng.bit_generator.state
    return frame(
        orjson.dumps(
            {
                "counters": [getattr(state, name) for name in COUNTERS],
                "forgotten": astuple(state.forgotten),
                "pacer": pack_pacer(state.pacer),
                "buckets": [[bucket.left_usd, bucket.at, bucket.reached] for bucket in state.buckets],
                "rng": [f"{rng['state']['state']:x}", f"{rng['state']['inc']:x}", rng["has_uint32"], rng["uinteger"]],
                "names": arms.names,
                "prices": [[price.input_price_per_m, price.output_price_per_m] for price in arms.price],
                "arms": [getattr(arms, name) for name in ARM_SCALARS],
            }
        )
    )


def pack_pacer(pacer: EmaPacer | DualPacer | None) -> dict[str, Any] | None:
    """Return a pacer's scalars."""
    if pacer is None:
        return None
    if isinstance(pacer, EmaPacer):
        return {"ema": [pacer.lambda_t, pacer.cost_ema_usd]}
    scalars = [pacer.lambda_t, pacer.debt_usd, pacer.target_usd, pacer.stale]
    return {"dual": scalars, "size": pacer.window.size, "next": pacer.window.next}


def unpack(config: bytes, head: bytes, piece: Callable[[str], bytes], open_commitments: Mapping[str, float]) -> RouterState:
    """Put a router together from its pieces.

    Args:
        config, head: as packed.
        piece: returns an array piece by its name.
        open_commitments: {request_id: decided_at} of requests whose bill is awaited, in order of their seq.

    Raises:
        CorruptSnapshot: a piece is damaged, missing or of another version.
    """
    state = RouterState.start(unpack_config(config))
    with reading("head"):
        _restore(state, loads(head), piece)
    state.open_commitments = dict(open_commitments)
    return state


def _restore(state: RouterState, body: Mapping[str, Any], piece: Callable[[str], bytes]) -> None:
    for name, value in zip(COUNTERS, body["counters"], strict=True):
        setattr(state, name, value)
    seed, inc, has_uint32, uinteger = body["rng"]
    state.rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(seed, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    state.buckets = [Bucket(cap, *left) for cap, left in zip(state.config.caps, body["buckets"], strict=True)]
    state.forgotten = Forgotten(*body["forgotten"])
    state.pacer = _unpack_pacer(body["pacer"], piece, d=state.arms.d)
    arms = state.arms
    arms.restore(
        tuple(body["names"]),
        prices=[Price(i, o) for i, o in body["prices"]],
        scalars=dict(zip(ARM_SCALARS, body["arms"], strict=True)),
    )
    for k, name in enumerate(arms.names):
        pieces.unpack_arm(arms, k, body_of(piece(name)))
        pieces.unpack_costs(arms, k, body_of(piece(cost_piece(name))))
    arms.derive()


def _unpack_pacer(packed: Mapping[str, Any] | None, piece: Callable[[str], bytes], *, d: int) -> EmaPacer | DualPacer | None:
    if packed is None:
        return None
    if "ema" in packed:
        return EmaPacer(*packed["ema"])
    window = Window(d)
    window.size, window.next = packed["size"], packed["next"]
    for block in range(-(-window.size // BLOCK)):
        pieces.unpack_window(window, block, body_of(piece(PIECES[block])))
    lambda_t, debt_usd, target_usd, stale = packed["dual"]
    return DualPacer(lambda_t, debt_usd, target_usd, stale, window)


def changed_pieces(state: RouterState) -> list[tuple[str, bytes | None]]:
    """Return the array pieces that changed since the last call, by name; None for a piece that is gone."""
    changed = [(name, _pack_piece(state, name)) for name in sorted(state.touched)]
    state.touched.clear()
    return changed


def all_pieces(state: RouterState) -> dict[str, bytes]:
    """Return every array piece of a router by name."""
    packed = {name: _pack_piece(state, name) for name in piece_names(state)}
    return {name: piece for name, piece in packed.items() if piece is not None}


def piece_names(state: RouterState) -> list[str]:
    """Return the names of all array pieces that a router may have."""
    return [*state.arms.names, *map(cost_piece, state.arms.names), *PIECES]


def _pack_piece(state: RouterState, name: str) -> bytes | None:
    arms = state.arms
    if name in arms.row:
        return frame(pieces.pack_arm(arms, arms.row[name]))
    if name in PIECES:
        pacer = state.pacer
        return frame(pieces.pack_window(pacer.window, PIECES.index(name))) if isinstance(pacer, DualPacer) else None
    model = name.removeprefix(cost_piece(""))
    return frame(pieces.pack_costs(arms, arms.row[model])) if model in arms.row else None


def pack_record(record: RequestRecord) -> bytes:
    """Return a request's record without its context, which is kept apart."""
    return frame(
        orjson.dumps(
            [
                *(getattr(record, name) for name in RECORD_SCALARS),
                [record.price.input_price_per_m, record.price.output_price_per_m],
                record.candidates,
                record.bill,
                record.label,
                record.expired,
                record.applied,
                *([] if record.answered_by is None else [record.answered_by]),
            ],
            default=structs.astuple,
        )
    )


def unpack_record(data: bytes) -> RequestRecord:
    """Invert `pack_record`. Raises CorruptSnapshot."""
    with reading("request"):
        fields = loads(data)
        scalars, (price, candidates, bill, label, expired, applied, *answered_by) = fields[:SCALARS], fields[SCALARS:]
        return RequestRecord(
            **dict(zip(RECORD_SCALARS, scalars, strict=True)),
            price=Price(*price),
            x=None,
            candidates=None if candidates is None else Candidates(tuple(candidates[0]), *candidates[1:]),
            bill=None if bill is None else Bill(*bill),
            label=None if label is None else Label(*label),
            expired=expired,
            applied=None if applied is None else Applied(*applied),
            answered_by=answered_by[0] if answered_by else None,
        )
