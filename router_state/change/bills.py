"""Bills that are not as expected: how much of one counts, and when they give a silent change of
price or tokens away."""

from __future__ import annotations

import math

from router_state.change.detector import Shift, Watch

MOST_TAUGHT = 10.0
"""A bill counts in the mean ratio as if it were at most this many times what was expected of it."""
LEAST_RESIDUAL = -math.log(MOST_TAUGHT)
"""A bill far below what was expected (a call that was cut off) counts as a tenth of it, as one far
above counts as ten times."""
COST_LIMIT, LEAST_COST_LIMIT = 12.0, 4.0
"""Log-likelihood ratio of an alarm for bills of up to a budget, and for the dearest ones
(benchmarks.shocks)."""
STAKE = 1.0
"""By what that limit falls with the logarithm of an expected bill, in budgets: false alarms of a
model come as rarely per request as its bills are dear, since the budget pays for so few of them."""
DEVIATION_BEFORE, DEVIATION_MEMORY = 3.0, 1000.0
"""Bills that the first deviation counts for, and over how many it is taken at most."""


def winsorised(ratio: float, predicted: float) -> float:
    """Return a ratio as it counts in a mean where another one was predicted."""
    # Cut and not left out: a price that has risen a hundredfold is still learned, ten times a bill.
    most = MOST_TAUGHT * predicted
    return most if 0.0 < most < ratio else ratio


def surprise(
    watch: Watch, residual: float, *, budgets: float, bills: float, now: float, least: float
) -> Shift | None:
    """Watch the logarithm of ratio ÷ prediction; return the shift that a bill gives away: a silent
    change of price or tokens.

    The evidence wanted falls by the logarithm of what is at stake, as in a Bayes test, but one bill
    alone is never enough.

    Args:
        residual: ln(ratio) less its prediction, divided by √(1 + the variance of what is not
            known).
        budgets: what was expected of the bill, in requests' budgets. Not the bill itself: an
            outlier would bring its own limit down.
        bills: how many the arm has had.
        least: deviation of bills of all models.
    """
    # As long as the arm's history, so that early bills count as much as late ones, up to a bound.
    memory = DEVIATION_BEFORE + bills
    limit = (
        COST_LIMIT
        if budgets <= 1.0
        else max(COST_LIMIT - STAKE * math.log(budgets), LEAST_COST_LIMIT)
    )
    return watch.observe(
        residual if residual > LEAST_RESIDUAL else LEAST_RESIDUAL,
        limit=limit,
        now=now,
        adaptive=True,
        memory=memory if memory < DEVIATION_MEMORY else DEVIATION_MEMORY,
        least=least,
    )
