"""Convert targets of latency between declarations, the core and `pb.lambda`."""

from __future__ import annotations

from router_state.latency.goal import LatencyGoal
from router_state.latency.timing import Timing
from schemas.latency import FirstTokenPriced
from schemas.routers import RouterDeclared


def latency_of(declared: RouterDeclared) -> LatencyGoal | None:
    """Return the declared target of latency; None if there is none.

    Raises:
        InvalidConfig: not one of a target and a price.
    """
    target, price = declared.latency_target, declared.usd_per_second
    if target is not None:
        return LatencyGoal(
            of=target.of,
            p95_seconds=None if target.p95_ms is None else target.p95_ms / 1e3,
            mean_seconds=None if target.mean_ms is None else target.mean_ms / 1e3,
        )
    if isinstance(price, FirstTokenPriced):
        return LatencyGoal(of="first_token", usd_per_second=price.first_token)
    return None if price is None else LatencyGoal(usd_per_second=price)


def latency_document(goal: LatencyGoal) -> dict[str, object]:
    """Return the fields of a declaration that mean this."""
    usd = goal.usd_per_second
    if usd is not None:
        return {"usd_per_second": usd if goal.of == "answer" else {"first_token": usd}}
    of = {} if goal.of == "answer" else {"of": goal.of}
    return {"latency_target": {**_limit(goal), **of}}


def latency_standing(timing: Timing) -> dict[str, object]:
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
    """Return what was declared, however small: 12 digits of it, without the conversion's error."""
    return float(f"{seconds * 1e3:.12g}")
