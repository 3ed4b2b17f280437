"""The ratio of a bill to the list price, and the bounds within which its logarithm is kept."""

from router_state.kernel.numbers.words cimport Real

cdef Real MIN_PRICE_PER_1K = 1e-9
"""List price of a free model in ratios, in dollars per 1k tokens."""


def list_price_of(price):
    """Return the list price that ratios refer to, in dollars per 1k tokens; never 0."""
    return max(price.per_1k, MIN_PRICE_PER_1K)


def bounded(Real exponent):
    """Return the logarithm of a ratio, clipped to what a call may cost."""
    return min(max(exponent, -MOST_EXPONENT), MOST_EXPONENT)


# For Python, which does not see numbers of C.
globals().update(MOST_EXPONENT=MOST_EXPONENT)
