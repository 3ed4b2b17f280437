"""Share a pool's money so that a dollar earns the same at every member.

Each member says what it would still spend at several prices of a dollar. The price at which all of
them together spend what is left is the pool's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from router_state.periods.reporting import LEAST_PRICE, MOST_PRICE, Curve, bounded_usd

SHARE_HALVINGS = 64
"""Halvings of the price's logarithm, or of an even share: they are known to one part in 10¹⁷
then."""
POINTS = 48
"""Prices of the curve that a pool passes on to its own pool."""


class Demand(NamedTuple):
    """The part of what is left that a member may get.

    Attributes:
        curve: what it would spend at which price.
        least, most: dollars that it gets at least, and at most.
    """

    curve: Curve
    least: float
    most: float

    def at(self, price: float) -> float:
        """Return the dollars that it gets at a price."""
        return min(max(spent_at(self.curve, price), self.least), self.most)


def spent_at(curve: Curve, price: float) -> float:
    """Return the spend of a curve at a price: interpolated over the logarithm of the price, falling
    above its last one."""
    before_price, before = curve[0]
    if price <= before_price:
        return before
    for next_price, usd in curve[1:]:
        if price < next_price:
            if price <= before_price:
                return before
            if before_price <= 0.0:
                part = price / next_price
            else:
                # Differences, as the quotient of two prices that somebody made up may overflow.
                low = math.log(before_price)
                part = (math.log(price) - low) / (math.log(next_price) - low)
            return before + (usd - before) * part
        before_price, before = next_price, usd
    return before if before_price <= 0.0 else before * min(before_price / price, 1.0)


def share(usd: float, demands: Sequence[Demand]) -> list[float]:
    """Return each member's share of the money left, in total no more than that.

    Where they would not spend all of it even at a price of 0, shares are even, except that nobody
    gets less than it would spend: of what is left over nobody knows who will need it.
    """
    least = [demand.least for demand in demands]
    if not demands or math.fsum(least) >= usd:
        return _part(usd, least)
    found = [demand.at(0.0) for demand in demands]
    if math.fsum(found) <= usd:
        return _even(usd, found, [demand.most for demand in demands])
    low, high = math.log(LEAST_PRICE), math.log(MOST_PRICE)
    for _ in range(SHARE_HALVINGS):
        middle = 0.5 * (low + high)
        price = math.exp(middle)
        if math.fsum(demand.at(price) for demand in demands) > usd:
            low = middle
        else:
            high = middle
    found = [demand.at(math.exp(high)) for demand in demands]
    return found if math.fsum(found) <= usd else _part(usd, found)


def _part(usd: float, parts: Sequence[float]) -> list[float]:
    """Return dollars in proportion to parts."""
    whole = math.fsum(parts)
    return [max(usd, 0.0) * part / whole if whole > 0.0 else 0.0 for part in parts]


def _even(usd: float, parts: Sequence[float], most: Sequence[float]) -> list[float]:
    """Return even shares, but at least these parts, and up to the most of each."""

    def at(level: float) -> list[float]:
        return [min(max(part, level), top) for part, top in zip(parts, most, strict=True)]

    low, high = 0.0, usd
    for _ in range(SHARE_HALVINGS):
        middle = 0.5 * (low + high)
        if math.fsum(at(middle)) > usd:
            high = middle
        else:
            low = middle
    return at(low)


def together(curves: Sequence[Curve]) -> Curve:
    """Return the sum of several curves, at some of their prices."""
    prices = sorted({price for curve in curves for price, _ in curve})
    # Evenly many between two of them: where members stand there are the most.
    step = max((len(prices) - 1) / (POINTS - 1), 1.0)
    some = [prices[round(k * step)] for k in range(min(POINTS, len(prices)))]
    return tuple(
        (price, bounded_usd(math.fsum(spent_at(curve, price) for curve in curves)))
        for price in some
    )
