"""List prices as they are stored in rows of numbers, see `Price.row`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from router_state.config import Price, Tier
from router_state.errors import DamagedState

Dollars = Annotated[float, Meta(ge=0.0)]


class TierRow(Struct, array_like=True, gc=False):
    """The price of a long input."""

    input_tokens: Annotated[int, Meta(ge=0)]
    input_price_per_m: Dollars
    output_price_per_m: Dollars


class PriceRow(Struct, array_like=True, gc=False):
    """Prices of input and output, and those of long inputs if there are any."""

    input_price_per_m: Dollars
    output_price_per_m: Dollars
    above: tuple[TierRow, ...] = ()

    @property
    def price(self) -> Price:
        """Return the price. Raises DamagedState."""
        if not self.above:
            return Price(self.input_price_per_m, self.output_price_per_m)
        return Price(self.input_price_per_m, self.output_price_per_m, tiers(self.above))


def tiers(rows: tuple[TierRow, ...]) -> tuple[Tier, ...]:
    """Return the prices of long inputs. Raises DamagedState if the inputs do not become longer."""
    if any(after.input_tokens <= before.input_tokens for before, after in pairwise(rows)):
        raise DamagedState("price: long inputs must become longer")
    return tuple(Tier(r.input_tokens, r.input_price_per_m, r.output_price_per_m) for r in rows)
