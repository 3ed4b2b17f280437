"""Write budgets of a period and targets of latency as sentences: what is left, for how many
requests, and how the period will end.
"""

from __future__ import annotations

from datetime import UTC, datetime

from drawing.family_lines import family_lines
from drawing.numbers import number, seconds, usd
from drawing.source_lines import source_lines
from schemas import LambdaUpdated
from schemas.lambdas import FloorStanding, PeriodStanding
from schemas.latency import LatencyStanding

BELIEVED = 20
"""Calls with a reported time that a target needs before it has an effect, as in the core."""


def standing_lines(state: LambdaUpdated, *, now: datetime | None = None) -> list[str]:
    """Return a sentence for each budget of a period, for the floor of rewards, for a target of
    latency, for its family, and for what is known of sources of labels.

    Args:
        now: the time at which the sentences are read; None: the present. The published state of a
            router without requests may be old.
    """
    now = now or datetime.now(UTC)
    lines = [
        _budget(standing, now=now, asked=state.decided > 0) for standing in state.budgets or ()
    ]
    if state.floor is not None:
        lines.append(_floor(state.floor))
    if state.latency is not None:
        lines.append(_latency(state.latency))
    return lines + family_lines(state.family) + source_lines(state.sources or ())


def remaining(until: datetime, now: datetime) -> str:
    """Write how long a period goes on: days, or hours on its last day."""
    hours = max((until - now).total_seconds() / 3600.0, 0.0)
    return f"{hours / 24.0:.1f} days" if hours >= 24.0 else f"{hours:.1f} hours"


def _budget(one: PeriodStanding, *, now: datetime, asked: bool) -> str:
    name = "between dates" if one.period == "dates" else f"per {one.period}"
    if one.line is not None:
        name = f"granted by {one.line} of pool {one.pool}"
    expected = (
        f"some {one.requests_left:,.0f} requests ({one.requests_low:,.0f} to "
        f"{one.requests_high:,.0f})"
    )
    forecast = (
        f"at its end {usd(one.forecast_usd)} will have been spent ({usd(one.forecast_low_usd)} to "
        f"{usd(one.forecast_high_usd)})"
    )
    binds = ", and it binds" if one.binds else ""
    until = f"until {one.ends:%Y-%m-%d %H:%M} UTC, in {remaining(one.ends, now)}"
    left = usd(one.left_usd) if one.left_usd > 0.0 else "nothing"
    head = f"{usd(one.usd)} {name}: {usd(one.charged_usd)} spent, {left} left {until}"
    if one.ends <= now:
        spent = f"{usd(one.usd)} {name}: {usd(one.charged_usd)} spent"
        return (
            f"{spent} of the period that ended on {one.ends:%Y-%m-%d %H:%M} UTC; no request since"
        )
    if one.left_usd <= 0.0:
        return f"{head}: nothing more may be spent{binds}"
    # What is published before the first request is a guess of the first requests' pace.
    if not asked:
        return f"{head}; no traffic seen yet, so nothing is forecast"
    return f"{head}, for {expected}, {usd(one.per_request_usd)} each; {forecast}{binds}"


def per_request(state: LambdaUpdated) -> str:
    """Write what a request may cost on average now."""
    if any(one.left_usd <= 0.0 for one in state.budgets or ()):
        return "nothing is left"
    return usd(state.budget_usd_per_request)


def _floor(floor: FloorStanding) -> str:
    needed = floor.needed_usd_per_request
    takes = "" if needed is None else f"; the floor takes {usd(needed)} a request"
    binds = ", and it binds" if floor.binds else ""
    return (
        f"expected reward {number(floor.expected_reward)} of {number(floor.best_reward)} at best"
        f"{takes}{binds}"
    )


def _latency(one: LatencyStanding) -> str:
    what = {"answer": "answers", "first_token": "first tokens"}[one.of]
    if one.p95_ms is not None:
        goal = f"19 of 20 {what} within {seconds(one.p95_ms)}"
    elif one.mean_ms is not None:
        goal = f"{what} within {seconds(one.mean_ms)} on average"
    else:
        goal = f"{what} at {usd(one.usd_per_second or 0.0)} a second"
    field = {"answer": "latency_ms", "first_token": "first_token_ms"}[one.of]
    if one.measured_ms is None or one.known < BELIEVED:
        return (
            f"{goal}: no effect yet, as {one.known} of the {BELIEVED} calls that it takes have "
            f"reported {field}; only bills after the target's declaration count"
        )
    over = "" if one.measured_over is None else f", {one.measured_over:.1%} of them too late"
    expected = "" if one.expected_over is None else f" ({one.expected_over:.1%} expected)"
    return f"{goal}: {seconds(one.measured_ms)} on average of late{over}{expected}"
