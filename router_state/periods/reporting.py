"""Report a router to its pool: the dollars that it holds, has spent, and would spend at several
prices of a dollar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from router_state.arms import Arms
from router_state.kernel import CLOSED
from router_state.pacing.scoring import candidates
from router_state.periods.accounts import Account
from router_state.periods.holdings import UNKNOWN, HeldAccounts
from router_state.periods.hourly_traffic import FIRST
from router_state.periods.ledger import Ledger
from router_state.periods.period_dual import PeriodDual

NOTHING, EVERYTHING = 0.003, 10.0
"""Ends of a report's prices, as rewards. At the lowest price, where costs hardly count, the mean
dearest call costs a reward of `NOTHING`. At the highest, where only costs count, the mean cheapest
call costs a reward of `EVERYTHING`.
"""
WIDE = 12
"""Number of prices of a report between these two, at equal ratios."""
LEAST_PRICE, MOST_PRICE = 1e-12, 1e12
"""Least and largest price that a report names, in reward per dollar; tiny bills would lead beyond
them. A pool searches its own price between the two.
"""
MOST_REPORTED_USD = 1e12
"""Most dollars that a report or a grant names (the wire contract)."""
MULTIPLES = (0.5, 0.75, 0.9, 1.0, 1.1, 1.33, 2.0)
"""Further prices of a report, as multiples of the router's own price."""

Curve = tuple[tuple[float, float], ...]
"""Pairs of a price, in reward per dollar, and the dollars that would be spent at it; prices
rise.
"""


class Held(Struct, frozen=True):
    """The dollars of a member in one period of one budget.

    Attributes:
        line, begin: the budget and the period's begin.
        holds_usd: total dollars that may be charged by the period's end under the grants so far.
        spent_usd: dollars charged, including those reserved for bills in flight.
        curve: dollars that the member would still spend, by price; empty: not known.
    """

    line: str
    begin: float
    holds_usd: float
    spent_usd: float
    curve: Curve = ()


class Reported(Struct, frozen=True):
    """A member's report to its pool.

    Attributes:
        member: "router:" or "pool:", and its id.
        born: the membership's number, see `Holdings`; n: number of the last set of grants that the
            member has accepted.
        moves: counter of changes: of two reports of one membership the one with the higher counter
            is newer.
        left: whether the member has left the pool.
    """

    pool_id: str
    member: str
    born: int
    n: int
    moves: int
    left: bool = False
    lines: tuple[Held, ...] = ()


def reported(
    ledger: Ledger, dual: PeriodDual | None, arms: Arms, router_id: str, *, now: float, left: bool
) -> Reported | None:
    """Return a router's report to its pool; None without a pool."""
    holdings = ledger.holdings
    if holdings is None:
        return None
    prices, costs = ([], []) if left or dual is None else _demand(dual, arms)
    lines = tuple(
        held
        for line in holdings.lines
        if line.line != UNKNOWN
        for held in _held(ledger, line, prices, costs, now=now, left=left)
    )
    pool_id, born, n, moves = holdings.pool_id, holdings.born, holdings.n, holdings.moves
    return Reported(pool_id, f"router:{router_id}", born, n, moves, left, lines)


def _held(
    ledger: Ledger,
    line: HeldAccounts,
    prices: Sequence[float],
    costs: Sequence[float],
    *,
    now: float,
    left: bool,
) -> list[Held]:
    accounts = {account.begin: account for account in line.kept}
    found = []
    for begin in sorted(accounts.keys() | line.holdings.keys()):
        holding = line.holdings.get(begin)
        period = line.budget.period(begin)
        account = accounts.get(begin) or (None if period is None else Account(*period))
        if account is None:
            continue
        spent = account.charged_usd + ledger.reserved_usd(account)
        is_granted = holding is not None and holding.lasts(now) and now < account.end and not left
        holds = max(spent, holding.usd) if is_granted and holding is not None else spent
        curve: Curve = ()
        if now < account.end and prices:
            # The other budgets limit a request at any price.
            most = _most(ledger, line, now=now)
            first = FIRST * (account.end - account.begin)
            requests = ledger.traffic.left(max(now, begin), account.end, first=first)
            curve = tuple(
                (price, bounded_usd(requests * min(cost, most)))
                for price, cost in zip(prices, costs, strict=True)
            )
        found.append(Held(line.line, begin, bounded_usd(holds), bounded_usd(spent), curve))
    return found


def bounded_usd(usd: float) -> float:
    """Return dollars clipped to what a report may name."""
    return min(max(usd, 0.0), MOST_REPORTED_USD)


def _most(ledger: Ledger, line: HeldAccounts, *, now: float) -> float:
    """Return the budget of a request under all limits except this line."""
    others = [
        standing.per_request_usd
        for standing in ledger.standings(now, seq=0)
        if standing.accounts is not line
    ]
    return min([ledger.floor_usd, *others])


def _demand(pacer: PeriodDual, arms: Arms) -> tuple[list[float], list[float]]:
    """Return prices around the router's own, and the mean cost of a request at each."""
    window = arms.window
    if window is None or not window.size or not len(arms):
        return [], []
    scores, costs = candidates(window, arms).arrays()
    # Arms that a request could not call have a cost at which they are never chosen.
    open_to = np.where(costs < 0.5 * CLOSED, costs, 0.0)
    dearest_usd = float(open_to.max(1).mean()) or 1.0
    cheapest_usd = float(costs.min(1).mean()) or dearest_usd
    low, high = _price(NOTHING / dearest_usd), _price(EVERYTHING / cheapest_usd)
    wide = [_price(low * (high / low) ** (k / (WIDE - 1))) for k in range(WIDE)]
    own = pacer.lambda_t / pacer.budget_usd
    near = [step * own for step in MULTIPLES if low < step * own < high]
    rows = np.arange(len(scores))
    prices = [0.0, *sorted({*wide, *near})]
    means = [float(costs[rows, (scores - price * costs).argmax(1)].mean()) for price in prices]
    most = math.inf if pacer.declared_usd is None else pacer.declared_usd
    return prices, [min(mean, most) for mean in means]


def _price(price: float) -> float:
    return min(max(price, LEAST_PRICE), MOST_PRICE)
