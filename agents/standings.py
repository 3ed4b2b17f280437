"""Write the standing of a period's budgets as `pb.lambda` publishes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from agents.instants import utc
from router_state.periods.leases import LeasedAccounts
from router_state.periods.ledger import LEAST_USD, Ledger
from router_state.periods.standing import Standing
from router_state.state.router import RouterState


def standings_value(state: RouterState, ledger: Ledger, observed_at: datetime) -> dict[str, object]:
    """Return the fields of `LambdaUpdated` about periods and the floor of rewards."""
    now = observed_at.timestamp()
    in_force = ledger.standings(now, seq=state.seq + 1)
    found: dict[str, object] = {
        "budget_usd_per_request": _allowed_usd(state, ledger, in_force, now)
    }
    # Of the last decision.
    per_request_usd = state.pacer.budget_usd
    standings = [one for one in in_force if one.accounts.is_lent(one.account) or one.account.count]
    floor = ledger.floor_usd
    floor_binds = per_request_usd is not None and floor <= per_request_usd
    if standings:
        tightest = min(standings, key=lambda one: one.per_request_usd)
        # If the price of a dollar is 0, requests cost less than allowed.
        paced = state.lambda_t > 0.0 and per_request_usd is not None
        costs = per_request_usd if paced and per_request_usd is not None else ledger.mean_usd
        found["budgets"] = [
            _standing(one, ledger, now, costs, binds=one is tightest and not floor_binds)
            for one in standings
        ]
    if ledger.spending.has_floor and state.seq:
        found["floor"] = {
            "expected_reward": ledger.reward,
            "best_reward": ledger.best,
            **({} if math.isinf(floor) else {"needed_usd_per_request": floor}),
            "binds": floor_binds,
        }
    return found


def _allowed_usd(
    state: RouterState, ledger: Ledger, in_force: Sequence[Standing], now: float
) -> float | None:
    """Return what the next request may cost; None where nothing limits it."""
    limits = [one.per_request_usd for one in in_force]
    if not limits and ledger.is_over(now):
        limits = [LEAST_USD]
    if state.config.budget_usd_per_request is not None:
        limits.append(state.config.budget_usd_per_request)
    if math.isfinite(ledger.floor_usd):
        limits.append(max(ledger.floor_usd, LEAST_USD))
    return min(limits, default=None)


def _standing(
    one: Standing, ledger: Ledger, now: float, costs_usd: float, *, binds: bool
) -> dict[str, object]:
    account, left = one.account, one.requests - 1.0
    factor = ledger.traffic.spread(left, account.end - now)
    charged = account.charged_usd
    low, high = left / factor, left * factor
    return {
        "period": one.accounts.budget.name,
        "begins": utc(account.begin),
        "ends": utc(account.end),
        "usd": one.usd,
        "charged_usd": charged,
        "left_usd": one.left_usd,
        "reserved_usd": one.reserved_usd,
        "requests_left": left,
        "requests_low": low,
        "requests_high": high,
        "per_request_usd": one.per_request_usd,
        "forecast_usd": charged + costs_usd * left,
        "forecast_low_usd": charged + costs_usd * low,
        "forecast_high_usd": charged + costs_usd * high,
        "binds": binds,
        **_lease(one, ledger),
    }


def _lease(one: Standing, ledger: Ledger) -> dict[str, object]:
    """Return the pool and line of a lease; empty for the router's own budget."""
    line, leases = one.accounts, ledger.leases
    if leases is None or not isinstance(line, LeasedAccounts):
        return {}
    found: dict[str, object] = {"pool": leases.pool_id, "line": line.name}
    if (loan := line.loans.get(one.account.begin)) is not None:
        found["lease_until"] = utc(loan.until)
    return found
