"""Any sequence of events with budgets of a period: accounts against lists of what was charged."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from router_state.changes import Outcome
from router_state.config import Price
from router_state.errors import BudgetSpent, NoAffordableModel
from router_state.periods.calendar import bounded
from router_state.periods.holdings import Grant, Granted
from router_state.periods.spending import ExpectedTraffic, PeriodBudget, Spending
from tests.router_state.core_reference import same
from tests.router_state.periods.ledgers import declaring, kept, ledger_of, reported
from tests.router_state.test_core_machine import TTL, Books

HOUR, DAY = 3600.0, 86_400.0
LISTS = (
    (PeriodBudget(0.01, "hour"),),
    (PeriodBudget(0.02, "hour"), PeriodBudget(0.1, "day", zone="Europe/Berlin", carry=math.inf)),
    (PeriodBudget(0.0, "day"),),
    (PeriodBudget(1e6, "month", zone="America/New_York", carry=5.0),),
    (PeriodBudget(0.05, None, starts=HOUR, until=6 * HOUR),),
)
SPENDINGS = (
    *(Spending(budgets) for budgets in LISTS),
    Spending(LISTS[1], "refuse", max_cost_per_request_usd=0.02),
    Spending(LISTS[1], "overrun", ExpectedTraffic(1000.0, (1.0,) * 84 + (0.0,) * 84)),
    Spending(LISTS[0], min_reward=0.6),
    Spending(min_of_best=0.9),
    Spending(max_cost_per_request_usd=1e-9),
    Spending(pool="shop"),
    Spending(LISTS[0], "refuse", pool="shop"),
    Spending(pool="other", min_reward=0.6),
)
spendings = st.none() | st.sampled_from(SPENDINGS)


class Periods(Books):
    """Books with what was charged to each period beside them."""

    knobs: ClassVar[dict[str, Any]] = {"commitment_ttl_seconds": TTL}
    spending: Spending | None = SPENDINGS[1]

    def _declaration(self, portfolio: dict[str, Price], budget: float | None) -> Any:
        return declaring(super()._declaration(portfolio, budget), self.spending)

    def check_decision(self, *asked: Any, **more: Any) -> None:
        spending = self.spending
        try:
            super().check_decision(*asked, **more)
        except NoAffordableModel:
            assert spending is not None
            assert spending.max_cost_per_request_usd is not None
        except BudgetSpent:
            assert spending is not None
            assert spending.when_spent == "refuse"

    @rule(spending=spendings)
    def declare_spending(self, spending: Spending | None) -> None:
        self.spending = spending
        config = self.engine.state.config
        self.declare(
            {name: model.price for name, model in config.models.items()},
            config.budget_usd_per_request,
            self.caches,
            self.latency,
            self.keeps,
        )

    @rule(hours=st.sampled_from([-30.0, -0.5, 0.3, 1.0, 5.0, 30.0, 24.0 * 70, 1e7]))
    def the_clock_jumps(self, hours: float) -> None:
        self.now += hours * HOUR

    @rule(
        usd=st.sampled_from([0.0, 0.01, 1.0]),
        hours=st.sampled_from([-1.0, 0.5, 40.0]),
        lines=st.sampled_from([("shop/day",), ("shop/day", "org/day"), ()]),
        older=st.integers(0, 1),
        ahead=st.booleans(),
    )
    def grant(
        self, usd: float, hours: float, lines: tuple[str, ...], older: int, ahead: bool
    ) -> None:
        ledger = kept(self.engine)
        if ledger is None or ledger.holdings is None:
            return
        holdings, until = ledger.holdings, bounded(self.now + hours * HOUR)
        begin = bounded(self.now) // DAY * DAY
        begins = [begin, begin + DAY] if ahead else [begin]
        grants = [
            Grant(line, "day", "UTC", None, None, at, at + DAY, usd, until)
            for line in lines
            for at in begins
        ]
        grant = Granted(holdings.pool_id, holdings.born, holdings.n + 1 - older, tuple(grants))
        assert self.apply(grant).outcome is (Outcome.DUPLICATE if older else Outcome.APPLIED)

    @invariant()
    def what_is_reported_is_sound(self) -> None:
        if not hasattr(self, "engine"):
            return
        report = reported(self.engine.state, "home", now=self.now)
        ledger = kept(self.engine)
        assert (report is not None) == (ledger is not None and ledger.holdings is not None)
        for held in () if report is None else report.lines:
            assert 0.0 <= held.spent_usd <= held.holds_usd < math.inf
            assert all(math.isfinite(n) and n >= 0.0 for point in held.curve for n in point)

    @invariant()
    def accounts_agree(self) -> None:
        if not hasattr(self, "engine") or kept(self.engine) is None:
            return
        ledger, records = ledger_of(self.engine), self.engine.records
        assert ledger.spending == self.spending
        for accounts in ledger.accounts:
            assert len({account.begin for account in accounts.kept}) == len(accounts.kept)
            for account in accounts.kept:
                charged = [r for r in records.values() if account.contains(r.decided_at, r.seq)]
                assert account.count == len(charged) + account.gone
                assert account.waiting == sum(r.bill is None and not r.expired for r in charged)
                assert same(
                    account.charged_usd,
                    account.gone_usd
                    + math.fsum(
                        r.expected_cost_usd if r.bill is None else r.bill.cost_usd for r in charged
                    ),
                    tolerance=1e-6,
                )
        assert math.isfinite(ledger.per_request_usd)


TestPeriods = Periods.TestCase
