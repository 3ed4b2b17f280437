"""Pieces of format 4 as those of format 5: what was learned goes on.

Format 4 was that of the releases before this one. Its numbers stood in other pieces; the debt's
scatter starts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import orjson

from router_state.costs.cost_model import cost_piece
from router_state.costs.input_tokens import PIECE as TOKENS
from router_state.errors import CorruptSnapshot
from router_state.journal import CONFIG, HEAD
from router_state.since import Since
from router_state.state.floats import packed
from router_state.state.framing import Json, body_of, frame, loads

FROM = 4
"""The format that is read beside the present one."""
_WATCH, _SUSPICION, _SCALES = 10, 5, 8
"""Numbers of a detector, of a suspicion and of a shared prior's scales."""


def upgraded(piece: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """Return the pieces of a router in the present format.

    Raises:
        CorruptSnapshot: a piece is damaged, or older than format 4 as it was last released.
        LookupError, TypeError, ValueError: a piece is not of format 4.
    """
    config, head = loads(piece(CONFIG)), loads(piece(HEAD))
    if "costs" not in head:
        raise CorruptSnapshot(
            "written before models learned together: start the release before this one once"
        )
    tokens = loads(piece(TOKENS)) if piece(TOKENS) else None
    # Where a program that does not know of tokens has decided since, costs are of whole bills.
    if tokens is not None and tokens["seq"] != head["counters"][SEQ]:
        tokens = None
    d, names = config["dimensions"], head["names"]
    found = {HEAD: frame(orjson.dumps(_head(head))), TOKENS: b""}
    if tokens is not None:
        kept = {name: tokens[name] for name in ("mean", "count", "slots")}
        found[TOKENS] = frame(orjson.dumps(kept))
    for k, name in enumerate(names):
        numbers = dict(zip(_ARM, (column[k] for column in head["arms"]), strict=True))
        rewards = np.frombuffer(body_of(piece(name)), "<f8")
        found[name] = frame(_rewards(rewards, numbers, d))
        costs = np.frombuffer(body_of(piece(cost_piece(name))), "<f8")
        share = 1.0 if tokens is None else tokens["shares"].get(name, 1.0)
        paid = head["paid"][k] if "paid" in head else 1.0
        novelty = head["familiar"][k] if "familiar" in head else [0.0, 1.0, 0.0, 0.0]
        means = [numbers["ratio"], numbers["bills"], *head["costs"][k][:2], paid, share, *novelty]
        found[cost_piece(name)] = frame(_costs(costs, means, d))
    for prior in ("\x1frewards", "\x1fbills"):
        values = np.frombuffer(body_of(piece(prior)), "<f8")
        found[prior] = frame(packed(values[-_SCALES:], values[:-_SCALES]))
    return lambda name: found[name] if name in found else piece(name)


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
SEQ = 1
"""Place of `seq` among the counters of a head of format 4."""


def _head(head: Mapping[str, Json]) -> dict[str, Json]:
    *counters, unreachable = head["counters"]
    pacer = head["pacer"] or {}
    dual = None
    if "dual" in pacer:
        lambda_t, debt, target, stale = pacer["dual"]
        sizes = pacer["size"], pacer["next"]
        dual = [lambda_t, debt, -1.0, 5.0, target, stale, unreachable, *sizes]
    arms = [dict(zip(_ARM, numbers, strict=True)) for numbers in zip(*head["arms"], strict=True)]
    return {
        "counters": [*counters, *head["forgotten"]],
        "ema": pacer.get("ema"),
        "dual": dual,
        "jumped": False,
        # Nobody knows in which order an older program has applied what it kept no steps of.
        "since": head.get("since") or Since.unknown(seq=counters[SEQ]).pack(),
        **{name: head[name] for name in ("buckets", "rng", "names", "prices")},
        "arms": [
            [arm["pulls_left"], arm["last_played"], costs[2], arm["retired_at"]]
            for arm, costs in zip(arms, head["costs"], strict=True)
        ],
    }


def _rewards(values: np.ndarray, numbers: Mapping[str, Json], d: int) -> bytes:
    arrays = d * (d + 3) // 2 + numbers["pending"] * d
    regression, watch, suspicion = np.split(values, (arrays, arrays + _WATCH))
    own = [numbers["decay"], numbers["forgotten"], numbers["last_update"]]
    return packed(own, watch, [float(len(suspicion))], suspicion, regression)


def _costs(values: np.ndarray, means: list[float], d: int) -> bytes:
    arrays = d * (d + 3) // 2
    regression, decay, watch, tails = np.split(values, (arrays, arrays + 1, arrays + 1 + _WATCH))
    return packed(decay, means, watch, regression, tails)
