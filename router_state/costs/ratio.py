"""What a bill is to the list price, and within which bounds its logarithm is kept."""

from __future__ import annotations

import math

from router_state.config import Price

MIN_PRICE_PER_1K = 1e-9
"""Dollars per 1k tokens that ratios of a free model are taken of."""
LEAST_RATIO = 1e-6
"""Of a declared mean cost to the list price: that of nothing has a logarithm all the same."""
MOST_EXPONENT = 20.0
"""Largest logarithm of an expected ratio: no call costs five hundred million times its list
price."""
MOST_FACTOR = 7.0
"""Largest logarithm of what one shift multiplies: a factor of 1,100."""


def list_price_of(price: Price) -> float:
    """Return what ratios are of, in dollars per 1k tokens; never 0."""
    return max(price.per_1k, MIN_PRICE_PER_1K)


def bounded(exponent: float) -> float:
    """Return the logarithm of a ratio within what a call may cost."""
    return (
        MOST_EXPONENT
        if exponent > MOST_EXPONENT
        else -MOST_EXPONENT
        if exponent < -MOST_EXPONENT
        else exponent
    )


def whole(exponent: float, known: float) -> float:
    """Return the logarithm of what is expected with the input tokens."""
    return math.log(known + math.exp(bounded(exponent)))


def of_rest(moved: float, exponent: float, known: float | None) -> float:
    """Return by how much the logarithm of the rest moves where that of the whole moves by so much,
    and input tokens are not billed above their list price."""
    if not known or moved < 0.0:
        return moved
    # What a shift adds to the whole is all in the rest, since the input is billed at its list
    # price.
    rest = math.exp(moved + whole(exponent, known)) - known
    return min(math.log(rest) - bounded(exponent), MOST_FACTOR)
