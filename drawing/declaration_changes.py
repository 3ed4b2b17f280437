"""Describe in words how two declarations of a router differ, for the charts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from drawing.numbers import usd
from router_state.cache_price import CachePrice
from router_state.kernel.given import Price
from schemas import RouterDeclared
from schemas.label_asking import LabelsWanted
from schemas.label_sources import Sources

Prices = tuple[float, float]
"""Dollars per million input tokens, and per million output tokens."""


class Portfolio(NamedTuple):
    """The part of a declaration that a page shows. It leaves out priors, which may be much
    larger.
    """

    budget_usd: float | None
    prices: dict[str, Prices]
    caches: dict[str, CachePrice]
    long_inputs: dict[str, Price]
    sources: Sources | None = None
    labels: LabelsWanted | None = None
    label_url: str | None = None

    @classmethod
    def of(cls, router: RouterDeclared) -> Portfolio:
        """Return the part of this declaration that a page shows."""
        from router_state.long_inputs.declared_prices import price_of  # both bring numpy along
        from router_state.sessions.cache_prices import cache_of

        prices = {
            # A page keeps every declaration of every router: their names are mostly the same few.
            sys.intern(name): (model.input_price_per_m, model.output_price_per_m)
            for name, model in router.models.items()
        }
        caches = {
            sys.intern(name): cache
            for name, model in router.models.items()
            if (cache := cache_of(model)) is not None
        }
        long = {
            sys.intern(name): price_of(model)
            for name, model in router.models.items()
            if model.price_above
        }
        asked = router.sources, router.labels, router.label_url
        return cls(router.budget_usd_per_request, prices, caches, long, *asked)


class News(NamedTuple):
    """Something that explains a chart: seconds since the epoch, a kind, a model, a sentence."""

    at: float
    kind: str
    model: str | None
    text: str


def differences(before: Portfolio, after: Portfolio, *, at: float) -> Iterator[News]:
    """Yield what differs between two declarations, as far as it explains money and traffic."""
    if before.budget_usd != after.budget_usd:
        told = f"budget {_budget(before.budget_usd)} → {_budget(after.budget_usd)}"
        yield News(at, "budget", None, told)
    for model in {**before.prices, **after.prices}:
        old, new = before.prices.get(model), after.prices.get(model)
        if old is None:
            yield News(at, "model", model, f"{model} joins")
        elif new is None:
            yield News(at, "model", model, f"{model} leaves")
        elif old != new:
            was, is_now = ("/".join(f"${price:g}" for price in prices) for prices in (old, new))
            yield News(at, "price", model, f"{model}: {was} → {is_now} per million tokens")
        elif before.long_inputs.get(model) != after.long_inputs.get(model):
            yield News(at, "price", model, f"{model}: other prices of long inputs")


def _budget(value: float | None) -> str:
    return "none" if value is None else usd(value)
