"""Decide from pairs whether a judge says anything of an answer.

Within models a judge's labels and gold correlate by ρ. Before any pair ρ is 0 with the probability
`NOTHING`, and else anywhere between 0 and 1. Fisher's z of the correlation that was seen is normal
around that of ρ, with variance 1 ÷ (n − 3) (Fisher 1921). A judge whose ρ is below `LEAST` with the
probability `SURE` says nothing: differences between its labels are noise, or inverted.
"""

from __future__ import annotations

import math

from router_state.kernel import exp_of, log_of
from router_state.sources.pair_sums import LEAST_SPREAD, Within

NOTHING = 0.2
"""Probability that a judge's labels say nothing, before any pair."""
LEAST = 0.2
"""Correlation within models below which a judge says nothing."""
SURE = 0.9
"""Probability from which a judge is taken to say nothing. A judge that is set aside wrongly costs
more than one that is kept wrongly (lab/docs/sources.md)."""
LIKELY = 0.5
"""Probability below which a judge that was set aside counts again."""
STEPS = 20
"""Correlations between 0 and 1 over which is summed."""
CLOSE = 0.999999
"""Largest correlation of which a z is taken."""


def says_nothing(within: Within, *, already: bool = False) -> bool:
    """Tell whether a judge with these pairs says nothing of an answer.

    Args:
        already: whether that was said before: it is taken back once it is not even likely.
    """
    return probability(within) >= (LIKELY if already else SURE)


def probability(within: Within) -> float:
    """Return the probability that a judge says nothing of an answer."""
    if within.n <= 3 or within.rr < LEAST_SPREAD:
        return NOTHING + (1.0 - NOTHING) * LEAST
    seen = 0.0
    if within.yy >= LEAST_SPREAD:
        seen = within.yr / math.sqrt(within.yy * within.rr)
    nothing, something = NOTHING * _likelihood(within.n, seen, 0.0), 0.0
    for step in range(STEPS):
        rho = (step + 0.5) / STEPS
        share = (1.0 - NOTHING) / STEPS * _likelihood(within.n, seen, rho)
        if rho < LEAST:
            nothing += share
        else:
            something += share
    return nothing / (nothing + something)


def _likelihood(n: int, seen: float, rho: float) -> float:
    apart = _z(seen) - _z(rho)
    return exp_of(-0.5 * (n - 3) * apart * apart)


def _z(correlation: float) -> float:
    inside = min(max(correlation, -CLOSE), CLOSE)
    return 0.5 * log_of((1.0 + inside) / (1.0 - inside))
