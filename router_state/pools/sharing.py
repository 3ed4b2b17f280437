"""Share a pool's money so that the last dollar earns the same at every member.

Each member reports the dollars that it would still spend at several prices of a dollar. The pool's
price is the one at which all members together would spend the money left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from router_state.periods.reporting import LEAST_PRICE, MOST_PRICE, Curve, bounded_usd

SHARE_HALVINGS = 64
"""Halvings of the interval of the price's logarithm, or of an even share's interval: the result is
known to one part in 10¹⁷.
"""
POINTS = 48
"""Number of prices in the curve that a pool reports to its parent."""


class Demand(NamedTuple):
    """The demand of one member: the part of the money left that it may get.

    Attributes:
        curve: dollars that the member would spend, by price.
        least, most: least and most dollars of its share.
    """

    curve: Curve
    least: float
    most: float

    def at(self, price: float) -> float:
        """Return the member's dollars at a price, within its bounds."""
        return min(max(spent_at(self.curve, price), self.least), self.most)


def spent_at(curve: Curve, price: float) -> float:
    """Return a curve's spend at a price, interpolated over the logarithm of the price. Above the
    curve's last price, spend falls in proportion.
    """
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
                # Differences of logarithms are used: the quotient of two made-up prices may
                # overflow.
                low = math.log(before_price)
                part = (math.log(price) - low) / (math.log(next_price) - low)
            return before + (usd - before) * part
        before_price, before = next_price, usd
    return before if before_price <= 0.0 else before * min(before_price / price, 1.0)


def share(usd: float, demands: Sequence[Demand]) -> list[float]:
    """Return each member's share of `usd`; the shares add up to at most `usd`.

    If the members would not spend all of it even at a price of 0, shares are even, but no member
    gets less than it would spend. It is not known who will need the rest.
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
    """Return `usd` divided in proportion to the parts."""
    whole = math.fsum(parts)
    return [max(usd, 0.0) * part / whole if whole > 0.0 else 0.0 for part in parts]


def _even(usd: float, parts: Sequence[float], most: Sequence[float]) -> list[float]:
    """Return even shares of `usd`, each between its part and its most."""

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
    """Return the sum of several curves, at a selection of their prices."""
    prices = sorted({price for curve in curves for price, _ in curve})
    # Prices are taken at even ranks, so that most lie where most members' prices lie.
    step = max((len(prices) - 1) / (POINTS - 1), 1.0)
    some = [prices[round(k * step)] for k in range(min(POINTS, len(prices)))]
    return tuple(
        (price, bounded_usd(math.fsum(spent_at(curve, price) for curve in curves)))
        for price in some
    )
