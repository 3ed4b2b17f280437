"""Targets of latency in a declaration, and how well they are met in `pb.lambda`."""

from __future__ import annotations

from typing import Any, Protocol

from router_state.latency.goal import LatencyGoal, Of
from router_state.latency.timing import Timing


class TargetOnWire(Protocol):
    """A target as it is declared."""

    of: Of
    p95_ms: float | None
    mean_ms: float | None


class OnWire(Protocol):
    """A router's declaration; `usd_per_second` is a number, or an object with `first_token`."""

    latency_target: TargetOnWire | None
    usd_per_second: Any


def read(declared: OnWire) -> LatencyGoal | None:
    """Return the declared target of latency; None if there is none.

    Raises:
        InvalidConfig: the declaration has neither or both of a target and a price.
    """
    target, price = declared.latency_target, declared.usd_per_second
    if target is not None:
        return LatencyGoal(
            of=target.of,
            p95_seconds=None if target.p95_ms is None else target.p95_ms / 1e3,
            mean_seconds=None if target.mean_ms is None else target.mean_ms / 1e3,
        )
    if price is None or isinstance(price, float | int):
        return None if price is None else LatencyGoal(usd_per_second=price)
    return LatencyGoal(of="first_token", usd_per_second=price.first_token)


def document(goal: LatencyGoal) -> dict[str, object]:
    """Return the fields of a declaration for this goal."""
    usd = goal.usd_per_second
    if usd is not None:
        return {"usd_per_second": usd if goal.of == "answer" else {"first_token": usd}}
    of = {} if goal.of == "answer" else {"of": goal.of}
    return {"latency_target": {**_limit(goal), **of}}


def lambda_fields(timing: Timing) -> dict[str, object]:
    """Return the fields of `LatencyStanding`."""
    goal, most = timing.goal, timing.goal.most
    found: dict[str, object] = {
        "of": goal.of,
        **_limit(goal),
        "latency_lambda": timing.per_unit * (most or 1.0),
        "known": int(timing.count),
    }
    if goal.usd_per_second is not None:
        found["usd_per_second"] = goal.usd_per_second
    if timing.count:
        found["measured_ms"] = timing.mean_seconds * 1e3
    tail = goal.p95_seconds is not None
    if tail and timing.count:
        found["measured_over"] = timing.over
    if most is not None and timing.target:
        found["expected_over" if tail else "expected_ms"] = timing.expected * (1 if tail else 1e3)
        found["debt"] = timing.debt.usd
    return found


def _limit(goal: LatencyGoal) -> dict[str, object]:
    if goal.p95_seconds is not None:
        return {"p95_ms": _milliseconds(goal.p95_seconds)}
    return {} if goal.mean_seconds is None else {"mean_ms": _milliseconds(goal.mean_seconds)}


def _milliseconds(seconds: float) -> float:
    """Return seconds as milliseconds with 12 significant digits, which drops the conversion's
    error.
    """
    return float(f"{seconds * 1e3:.12g}")
