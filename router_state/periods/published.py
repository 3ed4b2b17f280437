"""Write the standing of budgets of a period as `pb.lambda` publishes it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from router_state.instants import utc
from router_state.periods.holdings import HeldAccounts
from router_state.periods.ledger import LEAST_USD, Ledger
from router_state.periods.money_left import Standing
from router_state.periods.period_dual import PeriodDual


def lambda_fields(ledger: Ledger, dual: PeriodDual, now: float) -> dict[str, object]:
    """Return the fields of `pb.lambda` about periods and the floor of rewards."""
    in_force = ledger.standings(now, seq=0)
    found: dict[str, object] = {"budget_usd_per_request": _allowed_usd(ledger, dual, in_force, now)}
    # The standing is that before the last decision.
    per_request_usd = dual.budget_usd
    standings = [
        one for one in in_force if one.accounts.is_granted(one.account) or one.account.count
    ]
    floor = ledger.floor_usd
    floor_binds = floor <= per_request_usd
    if standings:
        tightest = min(standings, key=lambda one: one.per_request_usd)
        # If the price of a dollar is 0, requests cost less than they may.
        costs = per_request_usd if dual.lambda_t > 0.0 else ledger.mean_usd
        found["budgets"] = [
            _standing(one, ledger, now, costs, binds=one is tightest and not floor_binds)
            for one in standings
        ]
    if ledger.spending.has_floor and ledger.decided:
        found["floor"] = {
            "expected_reward": ledger.reward,
            "best_reward": ledger.best,
            **({} if math.isinf(floor) else {"needed_usd_per_request": floor}),
            "binds": floor_binds,
        }
    return found


def _allowed_usd(
    ledger: Ledger, dual: PeriodDual, in_force: Sequence[Standing], now: float
) -> float | None:
    """Return the budget of the next request in dollars; None: there is no limit."""
    limits = [one.per_request_usd for one in in_force]
    if not limits and ledger.is_over(now):
        limits = [LEAST_USD]
    if dual.declared_usd is not None:
        limits.append(dual.declared_usd)
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
    """Return the fields of `pb.lambda` that name a holding's pool and line; empty for the router's
    own budget.
    """
    line, holdings = one.accounts, ledger.holdings
    if holdings is None or not isinstance(line, HeldAccounts):
        return {}
    found: dict[str, object] = {"pool": holdings.pool_id, "line": line.name}
    if (holding := line.holdings.get(one.account.begin)) is not None:
        found["lease_until"] = utc(holding.until)
    return found
