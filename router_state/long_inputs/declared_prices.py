"""Prices of a model as it is declared, those of long inputs among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from router_state.config import Price, Tier


class PriceOnWire(Protocol):
    """Prices of input and output, in dollars per million tokens."""

    @property
    def input_price_per_m(self) -> float: ...
    @property
    def output_price_per_m(self) -> float: ...


class TierOnWire(PriceOnWire, Protocol):
    """Prices of a call whose input exceeds a number of tokens."""

    @property
    def input_tokens(self) -> int: ...


class ModelOnWire(PriceOnWire, Protocol):
    """A model as it is declared."""

    @property
    def price_above(self) -> Sequence[TierOnWire] | None: ...


def price_of(wire: ModelOnWire) -> Price:
    """Return a model's list price."""
    into, out = wire.input_price_per_m, wire.output_price_per_m
    if not wire.price_above:
        return Price(into, out)
    tiers = [
        Tier(one.input_tokens, one.input_price_per_m, one.output_price_per_m)
        for one in wire.price_above
    ]
    return Price(into, out, tuple(tiers))


def document(price: Price) -> dict[str, object]:
    """Invert `price_of`."""
    found: dict[str, object] = {
        "input_price_per_m": price.input_price_per_m,
        "output_price_per_m": price.output_price_per_m,
    }
    if price.above:
        names = Tier.__struct_fields__
        found["price_above"] = [dict(zip(names, row, strict=True)) for row in price.rows()]
    return found
