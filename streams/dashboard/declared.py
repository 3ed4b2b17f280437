"""Which declaration of a router is in force, and what each change was, for the charts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas import RouterDeclared
from streams.console.output import usd

WAITING = 8
"""Declarations that no worker has taken up yet; one at a time is usual."""
Prices = tuple[float, float]
"""Of a million input tokens, and of a million output tokens, in dollars."""


class Portfolio(NamedTuple):
    """What of a declaration a page shows: a prior of it may be a thousand times as large."""

    budget_usd: float | None
    prices: dict[str, Prices]

    @classmethod
    def of(cls, router: RouterDeclared) -> Portfolio:
        """Take it from a declaration."""
        prices = {
            sys.intern(name): (model.input_price_per_m, model.output_price_per_m)
            for name, model in router.models.items()
        }
        return cls(router.budget_usd_per_request, prices)


class News(NamedTuple):
    """Something that explains a chart: seconds since the epoch, a kind, a model, a sentence."""

    at: float
    kind: str
    model: str | None
    text: str


@dataclass(slots=True)
class Declarations:
    """The declaration in force, and those that wait for a worker: one may be refused, so none
    counts before `pb.lambda` names its offset.
    """

    in_force: Portfolio | None = None
    _offset: int = -1
    _waiting: dict[int, Portfolio | None] = field(default_factory=dict)

    @property
    def newest(self) -> Portfolio | None:
        """The one in force; before any is, the newest that waits."""
        waiting = [one for one in self._waiting.values() if one is not None]
        return self.in_force or (waiting[-1] if waiting else None)

    def add(
        self, offset: int, router: RouterDeclared | None, *, at: float, known: int | None
    ) -> list[News]:
        """Take a declaration in, and return its news if it is the one that is in force.

        Args:
            known: the offset that `pb.lambda` names, None before its first record.
        """
        self._waiting[offset] = None if router is None else Portfolio.of(router)
        while len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
        return [] if known is None else self.acknowledge(known, at=at)

    def acknowledge(self, offset: int, *, at: float) -> list[News]:
        """Put the declaration at an offset in force; return what it changes."""
        if offset == self._offset or offset not in self._waiting:
            return []
        before, after = self.in_force, self._waiting[offset]
        self._offset, self.in_force = offset, after
        self._waiting = {at: one for at, one in self._waiting.items() if at > offset}
        return [] if before is None or after is None else list(differences(before, after, at=at))


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


def _budget(value: float | None) -> str:
    return "none" if value is None else usd(value)
