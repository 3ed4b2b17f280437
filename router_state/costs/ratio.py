"""The ratio of a bill to the list price, and the bounds within which its logarithm is kept."""

from __future__ import annotations

from router_state.config import Price

MIN_PRICE_PER_1K = 1e-9
"""Dollars per 1k tokens that stand for the list price of a free model."""
MOST_EXPONENT = 20.0
"""Largest logarithm of an expected ratio: no call costs five hundred million times its list
price."""


def list_price_of(price: Price) -> float:
    """Return the list price that ratios refer to, in dollars per 1k tokens; never 0."""
    return max(price.per_1k, MIN_PRICE_PER_1K)


def bounded(exponent: float) -> float:
    """Return the logarithm of a ratio within what a call may cost."""
    return min(max(exponent, -MOST_EXPONENT), MOST_EXPONENT)
