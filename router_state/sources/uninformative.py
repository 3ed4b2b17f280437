"""Decide from pairs whether a judge's labels are uninformative.

Within models a judge's labels and gold correlate by ρ. Before any pair ρ is 0 with the probability
`PRIOR_UNINFORMATIVE`, and otherwise uniform between 0 and 1. Fisher's z of the observed correlation
is normal around that of ρ, with variance 1 ÷ (n − 3) (Fisher 1921). A judge is uninformative if its
ρ is below `LEAST_CORRELATION` with the probability `SURELY_UNINFORMATIVE`: differences between its
labels are noise, or inverted.
"""

from __future__ import annotations

import math

from router_state.kernel import exp_of, log_of
from router_state.sources.pair_sums import LEAST_SPREAD, Within

PRIOR_UNINFORMATIVE = 0.2
"""Probability that a judge is uninformative, before any pair."""
LEAST_CORRELATION = 0.2
"""Correlation within models below which a judge is uninformative."""
SURELY_UNINFORMATIVE = 0.9
"""Probability from which a judge is taken to be uninformative. A judge that is set aside wrongly
costs more than one that is kept wrongly (lab/docs/sources.md)."""
LIKELY = 0.5
"""Probability below which a judge that was set aside counts again."""
CORRELATIONS = 20
"""Number of correlations between 0 and 1 over which the posterior is summed."""
CLOSE = 0.999999
"""Largest correlation that is transformed to z, which is infinite at a correlation of 1."""


def is_uninformative(within: Within, *, already: bool = False) -> bool:
    """Tell whether a judge with these pairs is uninformative.

    Args:
        already: whether the judge was found uninformative before; it stays so while that is likely.
    """
    return probability(within) >= (LIKELY if already else SURELY_UNINFORMATIVE)


def probability(within: Within) -> float:
    """Return the probability that a judge is uninformative."""
    if within.n <= 3 or within.rr < LEAST_SPREAD:
        return PRIOR_UNINFORMATIVE + (1.0 - PRIOR_UNINFORMATIVE) * LEAST_CORRELATION
    correlation = 0.0
    if within.yy >= LEAST_SPREAD:
        correlation = within.yr / math.sqrt(within.yy * within.rr)
    prior = (1.0 - PRIOR_UNINFORMATIVE) / CORRELATIONS
    rhos = [0.0, *((step + 0.5) / CORRELATIONS for step in range(CORRELATIONS))]
    shares = [PRIOR_UNINFORMATIVE, *[prior] * CORRELATIONS]
    logs = [_log_likelihood(within.n, correlation, rho) for rho in rhos]
    # Of many pairs all likelihoods are too small for a float, but for their ratios.
    most = max(logs)
    weighed = [share * exp_of(one - most) for share, one in zip(shares, logs, strict=True)]
    nothing = sum(one for one, rho in zip(weighed, rhos, strict=True) if rho < LEAST_CORRELATION)
    return nothing / sum(weighed)


def _log_likelihood(n: int, correlation: float, rho: float) -> float:
    apart = _z(correlation) - _z(rho)
    return -0.5 * (n - 3) * apart * apart


def _z(correlation: float) -> float:
    inside = min(max(correlation, -CLOSE), CLOSE)
    return 0.5 * log_of((1.0 + inside) / (1.0 - inside))
