"""Prove that each period was charged what its requests cost."""

from __future__ import annotations

import math

from router_state.engine import Engine
from router_state.periods.accounts import Account
from router_state.periods.period_budgets import Periods
from studies.audit.findings import Findings, Kind

TOLERANCE = 1e-9
"""Largest difference in dollars, relative or absolute: a sum is rounded at each step."""


def check_periods(router_id: str, engine: Engine, findings: Findings) -> None:
    """Compare the accounts of a router's periods with the charges of the requests that were decided
    in them. The audit compares those requests' bills with the topics before.
    """
    periods = engine.state.having(Periods)
    for accounts in () if periods is None else periods.ledger.accounts:
        for account in accounts.kept:
            where = f"router {router_id}, {accounts.name} from {account.begin:.0f}"
            _check(account, engine, findings, where)


def _check(account: Account, engine: Engine, findings: Findings, where: str) -> None:
    charged = [r for r in engine.records.values() if account.contains(r.decided_at, r.seq)]
    if len(charged) + account.gone < account.count:
        # Without the records of all its requests nothing can be proved of a period.
        findings.unprovable("period", where, "requests of the period are forgotten")
        return
    usd = account.gone_usd + math.fsum(r.charged_usd for r in charged)
    waiting = sum(r.bill is None and not r.expired for r in charged)
    if not math.isclose(account.charged_usd, usd, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        findings.violation(
            Kind.PERIOD, where, f"{account.charged_usd!r} are charged, its requests cost {usd!r}"
        )
    if (account.count, account.waiting) != (len(charged) + account.gone, waiting):
        findings.violation(
            Kind.PERIOD,
            where,
            f"{account.count} requests are counted, {account.waiting} of them await their bill; "
            f"there are {len(charged) + account.gone} and {waiting}",
        )
