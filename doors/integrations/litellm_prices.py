"""Plan which prices of LiteLLM's list go into a portfolio unasked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from doors.integrations.price_list import CACHE, Listed, NoPriceList, PriceList, read_list
from ground.json_values import Json
from schemas.import_marks import (
    IMPORTED,
    IMPORTED_CACHE,
    IMPORTED_OFFERS,
    IMPORTED_OTHERS,
)

__all__ = [
    "IMPORTED",
    "IMPORTED_CACHE",
    "IMPORTED_OFFERS",
    "IMPORTED_OTHERS",
    "Change",
    "NoPriceList",
    "PriceList",
    "plan",
    "read_list",
]

JUMP = 10.0
"""Largest factor of a price change that is taken without a question; a larger one is mostly an
error in the list."""
DEAR, CHEAP = 1_000.0, 1e-3
"""Highest and lowest price of a model, in dollars per million tokens: the dearest cost 600, the
cheapest some cents. A price beyond them is mostly in another unit.
"""
OTHERS = ("price_above", "retires_at")
"""Further fields of a declaration that the list may fill; what was set by hand stays."""
CACHE_FIELDS = (*CACHE, "cache_min_tokens")
"""Fields of a declaration about caches that the list may fill."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that an import would make to one model of the portfolio.

    Attributes:
        doubt: why a person has to confirm it; None: it needs no confirmation.
        listed: the list's entry; None if the list lacks the model, or has an entry that can't be
            declared. Then the model stays as it is, and `doubt` says why.
        kept: the prices were set by hand, and stay unless the change is accepted.
        offers: its new capabilities; None: as declared, because they were set by hand or the list
            has none.
        cache: its new prices of cached input; None: as declared, as above.
        others: new values of `OTHERS`, None for one that left the list. `others` None: as declared.
        note: facts that the list lacks, or that a declaration can't express; None: none.
    """

    name: str
    before: Mapping[str, float] | None
    listed: Listed | None
    doubt: str | None
    kept: bool = False
    offers: Mapping[str, Json] | None = None
    cache: Mapping[str, Json] | None = None
    others: Mapping[str, Json] | None = None
    note: str | None = None

    @property
    def changes(self) -> bool:
        """Tell whether prices or capabilities would differ from today's."""
        news = (self.offers, self.cache, self.others)
        return self.listed is not None and (
            self.listed.prices != self.before or any(one is not None for one in news)
        )


def find(prices: PriceList, name: str) -> Listed | str:
    """Return a model's entry, or why there is none; the list omits some providers: `openai/gpt-4o`
    is `gpt-4o`.
    """
    for one in (name, name.partition("/")[2]):
        if one in prices:
            return prices[one]
        if one in prices.left_out:
            return f"is in LiteLLM's list and left out: {prices.left_out[one]}"
    return "is not in LiteLLM's list"


def plan(
    prices: PriceList,
    models: Mapping[str, Mapping[str, Json]],
    *,
    only: str | None,
    today: date,
) -> list[Change]:
    """Return the changes that an import would make.

    Args:
        models: the portfolio as it is declared.
        only: a pattern of names, which chooses among the models of the portfolio and of the price
            list; None: all models of the portfolio.
    """
    known = {*prices, *prices.left_out, *models}
    names = list(models) if only is None else sorted(one for one in known if fnmatchcase(one, only))
    return [_change(name, models.get(name), find(prices, name), today=today) for name in names]


def _change(
    name: str, model: Mapping[str, Json] | None, listed: Listed | str, *, today: date
) -> Change:
    before = (
        None
        if model is None
        else {field: model[field] for field in ("input_price_per_m", "output_price_per_m")}
    )
    by_hand = model is not None and model.get(IMPORTED) != before
    if isinstance(listed, str):
        return Change(name, before, None, listed)
    declared = None if model is None else model.get("offers")
    theirs = declared is None or declared == (model or {}).get(IMPORTED_OFFERS)
    news = listed.offers if theirs and listed.offers != (declared or {}) else None
    old = {name: model[name] for name in CACHE_FIELDS if name in (model or {})} if model else {}
    by_list = not old or old == (model or {}).get(IMPORTED_CACHE)
    cache = listed.cache if by_list and listed.cache and listed.cache != old else None
    return Change(
        name,
        before,
        listed,
        _doubt(before, listed, today=today),
        kept=by_hand and listed.prices != before,
        offers=news,
        cache=cache,
        others=_others(model or {}, listed.others(today)) or None,
        note="; ".join(listed.notes) or None,
    )


def _others(model: Mapping[str, Json], listed: Mapping[str, Json]) -> dict[str, Json]:
    """Return the values of `OTHERS` that differ from the declared ones and were not set by hand."""
    marks = model.get(IMPORTED_OTHERS) or {}
    return {
        name: listed.get(name)
        for name in OTHERS
        if model.get(name) == marks.get(name) and model.get(name) != listed.get(name)
    }


def _doubt(before: Mapping[str, float] | None, listed: Listed, *, today: date) -> str | None:
    if listed.deprecated is not None and listed.deprecated <= today:
        return f"is deprecated since {listed.deprecated}"
    if listed.doubt is not None:
        return listed.doubt
    for price in listed.prices.values():
        if price > DEAR or 0.0 < price < CHEAP:
            than = "more" if price > DEAR else "less"
            return f"is listed at ${price:,g} per million, {than} than any model costs"
    if 0.0 in listed.prices.values() and (before is None or listed.prices != before):
        return "is listed with a price of 0"
    for name, price in listed.prices.items():
        was = price if before is None else before[name]
        if was != price and not (was and price and 1 / JUMP <= price / was <= JUMP):
            return f"jumps from ${was:g} to ${price:g} per million"
    return None
