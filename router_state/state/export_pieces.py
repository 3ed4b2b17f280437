"""A router's state as named pieces, values and arrays, and back: what a file holds, however the
program keeps it.

Every name that is written stands here, in `export_arms` or in `export_config`, so that a change of
the program's objects does not change a file. A piece that is added later has a name of its own;
where a file lacks it, the reader says what it was before. A name that the reader does not know is
an error: a router would go on without it, and nobody would see.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from router_state import migration
from router_state.errors import CorruptSnapshot
from router_state.pacing.dollar_dual import DualPacer
from router_state.pacing.pacer import EmaPacer, Pacer
from router_state.state.caps import Bucket
from router_state.state.export_arms import (
    arm_arrays,
    arm_values,
    restore_arms,
    restore_shared,
    shared_values,
)
from router_state.state.export_checks import check
from router_state.state.export_config import config_values, restored_config
from router_state.state.export_fields import Pieces, Values, fields_of, unknown_names, values_of
from router_state.state.framing import Json
from router_state.state.router import RouterState
from router_state.state.snapshot import restore_counters, restore_pacer, restore_tokens, tokens_of

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
"""Of the books, by the names of `RouterState`."""
BUCKET = ("left_usd", "at", "reached")
"""Dollars left, at which second since the epoch, and whether its alert was raised."""
DUAL = ("lambda_t", "debt_usd", "target_usd", "stale")
"""Of `DualPacer`: dimensionless, dollars, dollars per request, decisions."""
EMA = ("lambda_t", "cost_ema_usd")
"""Of `EmaPacer`: dimensionless, dollars per request."""
RNG = ("state", "inc", "has_uint32", "uinteger")
"""Fields by their name in a file; they do not follow the objects' names, see above."""


def gathered(state: RouterState) -> Pieces:
    """Return everything that a router goes on from; its requests are not part of it."""
    values = {
        "config": config_values(state.config),
        "counters": fields_of(state, COUNTERS),
        "pacer": _pacer(state.pacer),
        "buckets": [_bucket(bucket) for bucket in state.buckets],
        "rng": _rng(state.rng),
        "arms": [arm_values(arm) for arm in state.arms],
        "shared": shared_values(state.arms),
        **({"tokens": tokens_of(state.arms)} if state.arms.tokens.count else {}),
    }
    arrays = arm_arrays(state.arms)
    if isinstance(state.pacer, DualPacer):
        arrays["window"] = state.pacer.window.contexts[: state.pacer.window.size].astype("<f4")
    return Pieces(values, arrays)


def restored(pieces: Pieces) -> RouterState:
    """Invert `gathered`. Raises CorruptSnapshot, LookupError, TypeError, ValueError."""
    names = ("config", "counters", "pacer", "buckets", "rng", "arms", "shared", "tokens")
    # Written before arms learned together: None. No request has said its tokens: None.
    config, counters, pacer, buckets, rng, arms, shared, tokens = values_of(
        "the router", {"shared": None, "tokens": None, **pieces.values}, names
    )
    state = RouterState.start(restored_config(config))
    named = dict(zip(COUNTERS, values_of("its counters", counters, COUNTERS), strict=True))
    restore_counters(state, named)
    state.rng.bit_generator.state = _restored_rng(rng)
    declared = zip(state.config.caps, buckets, strict=True)
    state.buckets = [Bucket(cap, *values_of("a cap", bucket, BUCKET)) for cap, bucket in declared]
    restore_arms(state.arms, arms, pieces)
    _restore_pacer(state, pacer, pieces, unreachable=named["unreachable"])
    if shared is None:
        check(state)
        migration.share(state)
    else:
        restore_shared(state.arms, shared, pieces)
    if tokens is not None:
        restore_tokens(state.arms, tokens)
    if pieces.arrays:
        raise CorruptSnapshot(unknown_names("the router", pieces.arrays))
    return state


def _bucket(bucket: Bucket) -> Values:
    # A file's names stay: what it calls reached is `exhausted` here.
    return dict(zip(BUCKET, (bucket.left_usd, bucket.at, bucket.exhausted), strict=True))


def _rng(rng: np.random.Generator) -> Values:
    found = rng.bit_generator.state
    state, inc = (
        f"{found['state'][name]:x}" for name in ("state", "inc")
    )  # 128 bits, more than JSON's integers
    return {
        "state": state,
        "inc": inc,
        "has_uint32": found["has_uint32"],
        "uinteger": found["uinteger"],
    }


def _restored_rng(body: Mapping[str, Json]) -> Values:
    state, inc, has_uint32, uinteger = values_of("the random generator", body, RNG)
    return {
        "bit_generator": "PCG64",
        "state": {"state": int(state, 16), "inc": int(inc, 16)},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }


def _pacer(pacer: Pacer) -> Values | None:
    if isinstance(pacer, DualPacer):
        window, scalars = pacer.window, dict(zip(DUAL, pacer.scalars(), strict=True))
        limited = {str(slot): sorted(models) for slot, models in window.limited.items()}
        return {
            "dual": {
                **scalars,
                "idle": pacer.idle,
                "window": {"size": window.size, "next": window.next, "limited": limited},
            }
        }
    return {"ema": fields_of(pacer, EMA)} if isinstance(pacer, EmaPacer) else None


def _restore_pacer(
    state: RouterState, body: Mapping[str, Json] | None, pieces: Pieces, *, unreachable: bool
) -> None:
    if body is None or "ema" in body:
        restore_pacer(
            state,
            None if body is None else {"ema": values_of("the pacer", body["ema"], EMA)},
            unreachable=unreachable,
        )
        return
    # Written before credit was kept for a while: 0.
    *scalars, idle, packed = values_of(
        "the pacer", {"idle": 0, **body["dual"]}, (*DUAL, "idle", "window")
    )
    size, following, limited = values_of("the window", packed, ("size", "next", "limited"))
    window = restore_pacer(
        state,
        {"dual": scalars, "size": size, "next": following, "idle": idle},
        unreachable=unreachable,
    )
    if window is not None:
        window.reserve(size)
        window.contexts[:size] = pieces.take("window", size, state.arms.d)
        window.limited = {int(slot): frozenset(models) for slot, models in limited.items()}
