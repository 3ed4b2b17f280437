"""Budgets of a period as sentences: what is left, for how many requests, and how it will end."""

from __future__ import annotations

from drawing.numbers import number, usd
from schemas import LambdaUpdated
from schemas.lambdas import FloorStanding, PeriodStanding


def standing_lines(state: LambdaUpdated) -> list[str]:
    """Return a sentence for each budget of a period, and one for the floor of rewards."""
    lines = [_budget(standing) for standing in state.budgets or ()]
    if state.floor is not None:
        lines.append(_floor(state.floor))
    return lines


def _budget(one: PeriodStanding) -> str:
    name = "between dates" if one.period == "dates" else f"per {one.period}"
    expected = (
        f"some {one.requests_left:,.0f} requests ({one.requests_low:,.0f} to "
        f"{one.requests_high:,.0f})"
    )
    forecast = (
        f"{usd(one.forecast_usd)} at its end ({usd(one.forecast_low_usd)} to "
        f"{usd(one.forecast_high_usd)})"
    )
    binds = ", and it binds" if one.binds else ""
    return (
        f"{usd(one.usd)} {name}: {usd(one.left_usd)} left until {one.ends:%Y-%m-%d %H:%M} UTC for "
        f"{expected}, {usd(one.per_request_usd)} each; {forecast}{binds}"
    )


def _floor(floor: FloorStanding) -> str:
    needed = floor.needed_usd_per_request
    takes = "" if needed is None else f"; the floor takes {usd(needed)} a request"
    binds = ", and it binds" if floor.binds else ""
    return (
        f"expected reward {number(floor.expected_reward)} of {number(floor.best_reward)} at best"
        f"{takes}{binds}"
    )
