"""Pieces of formats 4 and 6 as those of format 7: what was learned goes on.

Format 4 was that of the last release, 6 that of the commits after it. Of format 4 detectors and the
debt's scatter start anew: residuals were standardised otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import orjson

from router_state.changes import CONFIG, HEAD
from router_state.config import Vector
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.errors import CorruptSnapshot
from router_state.kernel import EVERY, SAMPLE_PIECE, cost_piece
from router_state.packing import layout
from router_state.packing.framing import Json, body_of, frame, loads, packed, version_of
from router_state.since import Since

Piece = Callable[[str], bytes]
"""Returns a piece by its name, b"" where there is none."""

OLDER = (4, 6)
"""The formats that are read beside the present one."""
_DUAL = ("lambda_t", "debt_usd", "scatter", "settled", "target_usd", "stale")
"""The first numbers of a dual of format 6; `stale` are the decisions since a solution."""
_WATCH = (
    *("sigma", "mean", "up.evidence", "up.count", "up.total", "up.since"),
    *("down.evidence", "down.count", "down.total", "down.since"),
)
"""Numbers of a detector of format 4."""
_NEW = [0.0] * (len(layout.WATCHED) + len(layout.SIDES))
"""A detector that has seen nothing."""


def upgraded(piece: Piece) -> Piece:
    """Return the pieces of a router in the present format.

    Raises:
        CorruptSnapshot: a piece is damaged, or older than format 4 as it was last released.
        LookupError, TypeError, ValueError: a piece is not of its format.
    """
    config, head = loads(piece(CONFIG)), loads(piece(HEAD))
    turn = _from_4 if version_of(piece(HEAD)) == 4 else _from_6
    found = turn(piece, head, config["dimensions"])
    return lambda name: found[name] if name in found else piece(name)


def _from_6(piece: Piece, head: dict[str, Json], d: int) -> dict[str, bytes]:
    if head["dual"] is not None:
        head["jumped"] |= head["dual"].pop(_DUAL.index("stale")) >= EVERY
    sample = _sample(body_of(piece(SAMPLE_PIECE)), len(head["names"]), d)
    return {HEAD: frame(orjson.dumps(head)), SAMPLE_PIECE: frame(sample)}


def _sample(data: bytes, K: int, d: int) -> bytes:
    """Return what draws are made from; the draw itself had been kept, too."""
    _, levels, center, counts = np.split(
        np.frombuffer(data, "<f8"), (K * d, K * d + K, K * d + K + d)
    )
    return packed(levels, np.zeros(K), center, [counts[0], 0.0])


def _means(
    ratio: float,
    bills: float,
    calibration: float,
    calibrated: float,
    paid: float,
    share: float,
    *,
    free: bool,
) -> list[float]:
    """Return a cost model's means. First guesses had counted among the bills: one in their mean,
    and three in the calibration."""
    own = calibrated - 3.0
    if own > 0.0:
        calibration += (calibration - 1.0) * 3.0 / own
    return [ratio, bills if free else max(bills - 1.0, 0.0), calibration, paid, share]


def _from_4(piece: Piece, head: dict[str, Json], d: int) -> dict[str, bytes]:
    if "costs" not in head:
        raise CorruptSnapshot(
            "written before models learned together: start the release before this one once"
        )
    tokens = loads(piece(TOKENS)) if piece(TOKENS) else None
    # Where a program that does not know of tokens has decided since, costs are of whole bills.
    _, seq, *_ = head["counters"]
    if tokens is not None and tokens["seq"] != seq:
        tokens = None
    prices = zip(head["names"], head["prices"], strict=True)
    free = frozenset(name for name, price in prices if not any(price))
    sample = _sample(body_of(piece(SAMPLE_PIECE)), len(head["names"]), d)
    found = {HEAD: frame(orjson.dumps(_head(head))), SAMPLE_PIECE: frame(sample), TOKENS: b""}
    if tokens is not None:
        kept = {name: tokens[name] for name in ("mean", "count", "slots")}
        found[TOKENS] = frame(orjson.dumps(kept))
    for k, name in enumerate(head["names"]):
        numbers = dict(zip(_ARM, (column[k] for column in head["arms"]), strict=True))
        rewards = np.frombuffer(body_of(piece(name)), "<f8")
        found[name] = frame(_rewards(rewards, numbers, d))
        costs = np.frombuffer(body_of(piece(cost_piece(name))), "<f8")
        share = 1.0 if tokens is None else tokens["shares"].get(name, 1.0)
        paid = head["paid"][k] if "paid" in head else 1.0
        means = numbers["ratio"], numbers["bills"], *head["costs"][k][:2], paid, share
        found[cost_piece(name)] = frame(_costs(costs, _means(*means, free=name in free), d))
    for prior in ("\x1frewards", "\x1fbills"):
        values = np.frombuffer(body_of(piece(prior)), "<f8")
        scales = len(layout.SHARED)
        found[prior] = frame(packed(values[-scales:], values[:-scales]))
    return found


_ARM = (
    "decay",
    "forgotten",
    "last_update",
    "last_played",
    "pulls_left",
    "pending",
    "ratio",
    "bills",
    "retired_at",
)
"""Order of the scalars of an arm in a head of format 4."""


def _head(head: Mapping[str, Json]) -> dict[str, Json]:
    *counters, unreachable = head["counters"]
    _, seq, *_ = counters
    pacer = head["pacer"] or {}
    dual = None
    if "dual" in pacer:
        lambda_t, debt, target, _ = pacer["dual"]
        sizes = pacer["size"], pacer["next"]
        dual = [lambda_t, debt, -1.0, 0.0, target, unreachable, *sizes]
    arms = [dict(zip(_ARM, numbers, strict=True)) for numbers in zip(*head["arms"], strict=True)]
    return {
        "counters": [*counters, *head["forgotten"]],
        "ema": pacer.get("ema"),
        "dual": dual,
        "jumped": True,
        # Nobody knows in which order an older program has applied what it kept no steps of.
        "since": head.get("since") or Since.unknown(seq=seq).pack(),
        **{name: head[name] for name in ("buckets", "rng", "names", "prices")},
        "arms": [
            [arm["pulls_left"], arm["last_played"], costs[2], arm["retired_at"]]
            for arm, costs in zip(arms, head["costs"], strict=True)
        ],
    }


def _rewards(values: Vector, numbers: Mapping[str, Json], d: int) -> bytes:
    arrays = d * (d + 3) // 2 + numbers["pending"] * d
    regression, _, suspicion = np.split(values, (arrays, arrays + len(_WATCH)))
    own = [numbers["decay"], numbers["forgotten"], numbers["last_update"]]
    return packed(own, _NEW, [float(len(suspicion))], suspicion, regression)


def _costs(values: Vector, means: list[float], d: int) -> bytes:
    arrays = d * (d + 3) // 2
    regression, decay, _, tails = np.split(values, (arrays, arrays + 1, arrays + 1 + len(_WATCH)))
    return packed(decay, means, _NEW, regression, tails)
