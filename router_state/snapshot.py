"""The state as bytes and back, equal to the bit: JSON for what is small, arrays for what is large, never pickle.

A router is kept in pieces, so that an event writes only what it changed: its configuration, its `head` (counters, clock and the
scalars of every arm), one piece per arm (matrices) and one per request. Each begins with the version of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from router_state.arms import Arms
from router_state.config import Cap, Knobs, Matrix, ModelConfig, Price, RouterConfig
from router_state.errors import CorruptSnapshot
from router_state.pacing import EmaPacer
from router_state.record import Applied, Bill, Candidates, Label, RequestRecord
from router_state.state import RouterState

VERSION = 1
ARM_SCALARS = ("decay", "forgotten", "last_update", "last_played", "pulls_left", "retired_at")
COUNTERS = ("t", "seq", "settled", "expired", "rewards_applied", "spend_usd", "committed_usd", "unmatched_cost_usd")

RECORD_SCALARS = (
    "seq", "model", "reason", "propensity", "expected_reward", "expected_cost_usd", "lambda_t", "config_offset", "decided_at",
    "offset",
)  # fmt: skip


def _frame(body: bytes) -> bytes:
    return bytes((VERSION,)) + body


def _body(data: bytes) -> bytes:
    if not data:
        raise CorruptSnapshot("empty")
    if data[0] != VERSION:
        raise CorruptSnapshot(f"format version {data[0]} is not {VERSION}: written by another version of this program")
    return data[1:]


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(_body(data))
    except orjson.JSONDecodeError as error:
        raise CorruptSnapshot(str(error)) from None


def pack_config(config: RouterConfig) -> bytes:
    """Return a configuration without the priors, which have done their work when it is in force."""
    models = {
        name: [model.price.input_price_per_m, model.price.output_price_per_m, model.onboarding_pulls]
        for name, model in config.models.items()
    }
    return _frame(
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
    body = _loads(data)
    return RouterConfig(
        models={name: ModelConfig(Price(i, o), None, pulls) for name, (i, o, pulls) in body["models"].items()},
        budget_usd_per_request=body["budget"],
        dimensions=body["dimensions"],
        profile=body["profile"],
        knobs=Knobs(**body["knobs"]),
        caps=tuple(Cap(**cap) for cap in body["caps"]),
        offset=body["offset"],
        applied=tuple(body["applied"]),
    )


def pack_head(state: RouterState) -> bytes:
    """Return counters, pacer, random generator and the scalars of every arm."""
    arms = state.arms
    rng = state.rng.bit_generator.state
    pacer = state.pacer
    return _frame(
        orjson.dumps(
            {
                "counters": [getattr(state, name) for name in COUNTERS],
                "pacer": None if pacer is None else [pacer.lambda_t, pacer.cost_ema_usd],
                "rng": [f"{rng['state']['state']:x}", f"{rng['state']['inc']:x}", rng["has_uint32"], rng["uinteger"]],
                "names": arms.names,
                "prices": [[price.input_price_per_m, price.output_price_per_m] for price in arms.price],
                "arms": [getattr(arms, name) for name in ARM_SCALARS],
            }
        )
    )


def pack_arm(arms: Arms, k: int) -> bytes:
    """Return the arrays of row k: the lower triangles of A_hat and its inverse, b_hat, θ and w."""
    lower = _lower(arms.d)
    parts = (arms.A_hat[k].ravel()[lower], arms.A_hat_inv[k].ravel()[lower], arms.b_hat[k], arms.theta[k], arms.w[k])
    return _frame(b"".join(part.astype("<f8", copy=False).tobytes() for part in parts))


def changed_pieces(state: RouterState) -> list[tuple[str, bytes | None]]:
    """Return the array pieces that changed since the last call, by name; None for a piece that is gone."""
    arms = state.arms
    pieces = [(name, pack_arm(arms, arms.index(name)) if name in arms.names else None) for name in sorted(state.touched)]
    state.touched.clear()
    return pieces


@lru_cache
def _lower(d: int) -> npt.NDArray[np.intp]:
    """Return where the lower triangle lies in a flattened (d, d) matrix."""
    rows, columns = np.tril_indices(d)
    return rows * d + columns


def unpack(config: bytes, head: bytes, arm_of: Callable[[str], bytes], open_commitments: Mapping[str, float]) -> RouterState:
    """Put a router together from its pieces.

    Args:
        config, head: as packed.
        arm_of: returns the piece of an arm by its name.
        open_commitments: {request_id: decided_at} of requests whose bill is awaited, in order of their seq.

    Raises:
        CorruptSnapshot: a piece is damaged, missing or of another version.
    """
    state = RouterState.start(unpack_config(config))
    body = _loads(head)
    for name, value in zip(COUNTERS, body["counters"], strict=True):
        setattr(state, name, value)
    state.pacer = None if body["pacer"] is None else EmaPacer(*body["pacer"])
    seed, inc, has_uint32, uinteger = body["rng"]
    state.rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(seed, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    state.open_commitments = dict(open_commitments)
    _unpack_arms(state.arms, body, arm_of)
    return state


def _unpack_arms(arms: Arms, body: Mapping[str, Any], arm_of: Callable[[str], bytes]) -> None:
    d, names = arms.d, tuple(body["names"])
    arms.restore(
        names,
        prices=[Price(i, o) for i, o in body["prices"]],
        scalars=dict(zip(ARM_SCALARS, body["arms"], strict=True)),
    )
    triangle = d * (d + 1) // 2
    for k, name in enumerate(names):
        values = np.frombuffer(_body(arm_of(name)), "<f8")
        if len(values) != 2 * triangle + 3 * d:
            raise CorruptSnapshot(f"the arrays of arm {name!r} have {len(values)} entries, not {2 * triangle + 3 * d}")
        A, A_inv, vectors = values[:triangle], values[triangle : 2 * triangle], values[2 * triangle :].reshape(3, d)
        arms.A_hat[k] = _symmetric(A, d)
        arms.A_hat_inv[k][:] = _symmetric(A_inv, d)
        arms.b_hat[k], arms.theta[k][:], arms.w[k][:] = vectors


def _symmetric(triangle: Matrix, d: int) -> Matrix:
    full = np.zeros((d, d))
    full.ravel()[_lower(d)] = triangle
    full.T.flat[_lower(d)] = triangle
    return full


def pack_record(record: RequestRecord) -> bytes:
    """Return a request's record without its context, which is kept apart."""
    return _frame(
        orjson.dumps(
            [
                *(getattr(record, name) for name in RECORD_SCALARS),
                [record.price.input_price_per_m, record.price.output_price_per_m],
                record.candidates,
                record.bill,
                record.label,
                record.expired,
                record.applied,
            ],
            default=tuple,
        )
    )


def unpack_record(data: bytes) -> RequestRecord:
    """Invert `pack_record`. Raises CorruptSnapshot."""
    *scalars, price, candidates, bill, label, expired, applied = _loads(data)
    return RequestRecord(
        **dict(zip(RECORD_SCALARS, scalars, strict=True)),
        price=Price(*price),
        x=None,
        candidates=None if candidates is None else Candidates(tuple(candidates[0]), *candidates[1:]),
        bill=None if bill is None else Bill(*bill),
        label=None if label is None else Label(*label),
        expired=expired,
        applied=None if applied is None else Applied(*applied),
    )
