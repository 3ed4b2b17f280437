"""Rule out models that cost more than the limit of one call, or more than is left of the
period.
"""

from __future__ import annotations

from collections.abc import Sequence

from router_state.changes import Journal
from router_state.choice import Choice, Excluded
from router_state.errors import BudgetSpent, NoAffordableModel
from router_state.periods.ledger import PIECE, Ledger
from router_state.periods.money_left import Standing


def apply(ledger: Ledger, journal: Journal, choice: Choice) -> None:
    """Rule out arms whose expected cost is above the limit of one call, or above the dollars left
    of the period. If the dollars left rule out any arm, the decision's reason is "capped". If none
    are left, the cheapest arms are called or the request is refused, as declared.

    Raises:
        NoAffordableModel: every arm is expected to cost more than the limit of one call.
        BudgetSpent: nothing is left, and the router refuses then.
    """
    expected, now = choice.seen.expected_cost_usd, choice.now
    excluded = _under(choice.excluded, expected, ledger.spending.max_cost_per_request_usd)
    if ledger.spending.max_cost_per_request_usd is not None:
        choice.spare(ledger.spending.max_cost_per_request_usd)
    standings = ledger.standings(now, seq=choice.seq)
    if not standings:
        choice.cap(excluded, None)
        return
    tightest = min(standings, key=lambda one: one.free_usd)
    choice.spare(tightest.free_usd)
    under = [
        why or (None if cost <= tightest.free_usd else "budget_spent")
        for why, cost in zip(excluded, expected, strict=True)
    ]
    if None in under:
        choice.cap(under, None if under == excluded else "capped")
        return
    _alert(ledger, journal, tightest, now)
    if ledger.spending.when_spent == "refuse":
        raise BudgetSpent(
            f"${max(tightest.free_usd, 0.0):.6f} is left of the budget per "
            f"{tightest.accounts.name}, less than the cheapest eligible model costs"
        )
    choice.cap(excluded, None)


def _under(excluded: Excluded, expected: Sequence[float], most_usd: float | None) -> Excluded:
    if most_usd is None:
        return excluded
    under = [
        why or (None if cost <= most_usd else "over_max_cost")
        for why, cost in zip(excluded, expected, strict=True)
    ]
    if None not in under:
        raise NoAffordableModel(
            f"every eligible model is expected to cost more than ${most_usd:g} "
            "(max_cost_per_request_usd)"
        )
    return under


def _alert(ledger: Ledger, journal: Journal, standing: Standing, now: float) -> None:
    """Raise one alert per period that nothing is left."""
    # A refusal must not open an account: a replay does not see refusals, and would open the
    # account later.
    account, accounts = standing.account, standing.accounts
    if accounts.alerted == account.begin or not accounts.is_granted(account):
        return
    accounts.alerted = account.begin
    journal.pieces.add(PIECE)
    usd = standing.usd
    evidence = {
        "period": accounts.name,
        "usd": usd,
        "charged_usd": account.charged_usd,
        "reserved_usd": standing.reserved_usd,
        "when_spent": ledger.spending.when_spent,
        "until": account.end,
    }
    size = account.charged_usd / usd if usd > 0.0 else 1.0
    journal.alert("budget_spent", size, evidence, now=now, since=account.begin)
