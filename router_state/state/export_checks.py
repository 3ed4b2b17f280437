"""What a state from outside must hold before an engine may go on from it: a checksum vouches for
bytes, not for their sense."""

from __future__ import annotations

import math

import numpy as np

from router_state.arm import Arm
from router_state.change.detector import Watch
from router_state.config import Matrix
from router_state.errors import CorruptSnapshot
from router_state.learning.regression import RIDGE_FLOOR
from router_state.pacing.dollar_dual import UNREACHABLE, DualPacer
from router_state.pacing.pacer import LAMBDA_MAX, EmaPacer
from router_state.pacing.window import LENGTH
from router_state.state.router import RouterState


def check(state: RouterState) -> None:
    """Raise CorruptSnapshot, or TypeError, naming the first thing that can't be. O(K·d³)."""
    for name in ("t", "seq", "settled", "expired", "rewards_applied"):
        _require(name, _whole(getattr(state, name)) >= 0)
    for name in ("spend_usd", "committed_usd", "unmatched_cost_usd", "latest"):
        _require(name, math.isfinite(getattr(state, name)))
    _require("unreachable", isinstance(state.unreachable, bool))
    _require(
        "names of models",
        len(set(state.arms.names)) == len(state.arms)
        and all(_is_name(n) for n in state.arms.names),
    )
    for k, arm in enumerate(state.arms):
        _require(f"arrays of {arm.name}", bool(np.isfinite(state.arms.stack.rows[k]).all()))
        _check_arm(arm, t=state.t)
    for bucket in state.buckets:
        _require(
            "caps",
            math.isfinite(bucket.left_usd)
            and math.isfinite(bucket.at)
            and isinstance(bucket.exhausted, bool),
        )
    _check_pacer(state)


def _check_arm(arm: Arm, *, t: int) -> None:
    name, belief, costs, suspicion = arm.name, arm.belief, arm.costs, arm.suspicion
    _require(
        f"clock of {name}",
        0 <= _whole(belief.last_update) <= t and 0 <= _whole(belief.last_played) <= t,
    )
    _require(f"pulls of {name}", _whole(arm.pulls_left) >= 0)
    _require(
        f"decay of {name}",
        RIDGE_FLOOR <= belief.decay <= 1.0 and 0.0 <= belief.forgotten < math.inf,
    )
    _require(
        f"cost ratio of {name}", 0.0 <= costs.ratio < math.inf and 0.0 <= costs.bills < math.inf
    )
    _require(f"input tokens of {name}", 0.0 < costs.input_share <= 1.0 and 0.0 < costs.paid <= 1.0)
    _require(
        f"price of {name}",
        0.0 <= arm.price.input_price_per_m <= 1e6 and 0.0 <= arm.price.output_price_per_m <= 1e6,
    )
    _require(f"pending rows of {name}", 0 <= _whole(belief.pending) < max(1, len(belief.tails)))
    _require(f"retirement of {name}", arm.retired_at is None or math.isfinite(arm.retired_at))
    _require(f"arrays of {name}", bool(np.isfinite(belief.tails).all()))
    # A state that is not positive definite would score with imaginary doubts.
    _require(f"design matrix of {name}", _is_positive_definite(belief.A_inv()))
    _require(
        f"cost model of {name}",
        0.0 < costs.decay <= 1.0 and _is_positive_definite(costs.undecayed()),
    )
    _require(f"watch of {name}", _is_watch(arm.watch) and _is_watch(costs.watch))
    _require(f"prompts of {name}", all(map(math.isfinite, costs.familiar.pack())))
    if suspicion is not None:
        numbers = (suspicion.offset, suspicion.evidence, suspicion.since)
        counts = (suspicion.count, suspicion.after)
        _require(
            f"suspicion of {name}",
            all(map(math.isfinite, numbers)) and all(_whole(count) >= 0 for count in counts),
        )


def _check_pacer(state: RouterState) -> None:
    pacer = state.pacer
    if isinstance(pacer, EmaPacer):
        _require(
            "λ_t", 0.0 <= pacer.lambda_t <= LAMBDA_MAX and 0.0 <= pacer.cost_ema_usd < math.inf
        )
    if isinstance(pacer, DualPacer):
        window = pacer.window
        _require("λ_t", 0.0 <= pacer.lambda_t <= UNREACHABLE)
        _require(
            "debt",
            math.isfinite(pacer.debt_usd)
            and math.isfinite(pacer.target_usd)
            and _whole(pacer.stale) >= 0
            and _whole(pacer.idle) >= 0,
        )
        _require("window", 0 <= _whole(window.size) <= LENGTH and 0 <= _whole(window.next) < LENGTH)
        _require("contexts of the window", bool(np.isfinite(window.contexts).all()))
        _require("limits of the window", all(0 <= slot < window.size for slot in window.limited))


def _require(what: str, holds: bool) -> None:
    if not holds:
        raise CorruptSnapshot(f"{what} can't be")


def _whole(value: int) -> int:
    # A bool is an int to Python, and 1.0 equals 1: counts must be neither.
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value


def _is_name(name: str) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= 200 and name.isprintable()


def _is_watch(watch: Watch) -> bool:
    return (
        all(map(math.isfinite, watch.pack()))
        and watch.sigma >= 0.0
        and watch.up.count >= 0
        and watch.down.count >= 0
    )


def _is_positive_definite(matrix: Matrix) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(matrix).all())
