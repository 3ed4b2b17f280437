"""Read LiteLLM's list of prices without importing LiteLLM, and plan which of them go into a
portfolio unasked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

from ground import extras
from ground.json_values import Json

PRICE_LIST = "model_prices_and_context_window_backup.json"
"""File of prices in LiteLLM's wheel."""
TALKING = frozenset({"chat", "completion", "responses"})
"""Modes of LiteLLM's models that answer prompts."""
JUMP = 10.0
"""Largest factor of a price change that is taken without a question; a larger one is mostly an
error in the list."""
IMPORTED = "imported"
"""Field of a model in the declaration, ignored by workers, with the prices of the last import. If
today's prices differ from it, they were set by hand."""
IMPORTED_OFFERS = "imported_offers"
"""The same field for the model's capabilities."""
IMPORTED_CACHE = "imported_cache"
"""The same field for the prices of cached input."""
CACHE = {
    "cached_input_price_per_m": "cache_read_input_token_cost",
    "cache_write_price_per_m": "cache_creation_input_token_cost",
}
"""Field of the list for each price of cached input in a declaration."""
CACHE_FIELDS = (*CACHE, "cache_min_tokens")
"""Fields of a declaration about caches that the list may fill."""
CAN = {
    "vision": ("supports_vision",),
    "tools": ("supports_function_calling",),
    "json_output": ("supports_response_schema", "supports_native_structured_output"),
}
"""Capabilities by the list's flags; the list leaves out what it does not know."""


class NoPriceList(Exception):
    """LiteLLM is not installed, or has no list of prices."""

    reason = "no_price_list"
    retriable = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A model of the list: dollars per million tokens, and the date of its deprecation."""

    name: str
    input_price_per_m: float
    output_price_per_m: float
    deprecated: date | None
    offers: Mapping[str, Json] = field(default_factory=dict)
    cache: Mapping[str, Json] = field(default_factory=dict)
    doubt: str | None = None

    @property
    def prices(self) -> dict[str, float]:
        """Return the prices as fields of a declaration."""
        return {
            "input_price_per_m": self.input_price_per_m,
            "output_price_per_m": self.output_price_per_m,
        }


@dataclass(frozen=True, slots=True)
class Change:
    """A change that an import would make to one model of the portfolio.

    Attributes:
        doubt: why a person has to confirm it; None: it needs no confirmation.
        listed: the list's entry; None if the list lacks the model, which then stays as it is.
        kept: the prices were set by hand, and stay unless the change is accepted.
        offers: its new capabilities; None: as declared, because they were set by hand or the list
            has none.
        cache: its new prices of cached input; None: as declared, as above.
        note: what the list does not say about it; None: nothing is missing.
    """

    name: str
    before: Mapping[str, float] | None
    listed: Listed | None
    doubt: str | None
    kept: bool = False
    offers: Mapping[str, Json] | None = None
    cache: Mapping[str, Json] | None = None
    note: str | None = None

    @property
    def changes(self) -> bool:
        """Tell whether prices or capabilities would differ from today's."""
        return self.listed is not None and (
            self.listed.prices != self.before or self.offers is not None or self.cache is not None
        )


def read_list(path: Path | None = None) -> dict[str, Listed]:
    """Return every model of the list that answers with text and has both prices.

    Raises:
        NoPriceList: there is none.
    """
    # Found and not imported: importing LiteLLM takes seconds, and reads settings of its own.
    found = find_spec("litellm") if path is None else None
    if path is None and (found is None or found.origin is None):
        raise NoPriceList(f"LiteLLM is not installed: {extras.command('litellm')}")
    path = path or Path(str(found and found.origin)).parent / PRICE_LIST
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoPriceList(f"cannot read LiteLLM's list of prices: {error}") from error
    return {
        name: one
        for name, entry in entries.items()
        if isinstance(entry, dict) and (one := _listed(name, entry))
    }


def _listed(name: str, entry: Mapping[str, Json]) -> Listed | None:
    prices = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if entry.get("mode") not in TALKING or not all(
        isinstance(price, int | float) and price >= 0 for price in prices
    ):
        return None
    # Rounded, since a price per token times a million seldom is the decimal number that was meant.
    into, out = (round(float(price or 0.0) * 1e6, 9) for price in prices)
    cache, doubt = _cache(entry, into)
    deprecated = _date(entry.get("deprecation_date"))
    return Listed(name, into, out, deprecated, _offers(entry), cache, doubt)


def _cache(entry: Mapping[str, Json], input_per_m: float) -> tuple[dict[str, Json], str | None]:
    """Return an entry's prices of cached input, and a doubt; prices in doubt are left out."""
    found: dict[str, Json] = {}
    zero = set()
    for name, listed in CACHE.items():
        price = entry.get(listed)
        if not isinstance(price, int | float) or isinstance(price, bool):
            continue
        if price > 0.0:
            found[name] = round(float(price) * 1e6, 9)
        elif price == 0.0 and input_per_m > 0.0:
            zero.add(name)
    if "cached_input_price_per_m" not in found:
        free = "cached_input_price_per_m" in zero
        return {}, "its cached price is 0 in the list, and left out" if free else None
    if found["cached_input_price_per_m"] > input_per_m:
        return {}, "its cached price is above its input price in the list"
    if isinstance(least := entry.get("prompt_cache_min_tokens"), int) and least > 0:
        found["cache_min_tokens"] = least
    if "cache_write_price_per_m" in zero:
        # Taken as nothing extra: a write that is free altogether would make all input free.
        return found, "its cache write price is 0 in the list, so writes cost its input price"
    return found, None


def _offers(entry: Mapping[str, Json]) -> dict[str, Json]:
    """Return an entry's capabilities, by the names of a declaration."""
    found: dict[str, Json] = {
        name: True for name, flags in CAN.items() if any(entry.get(flag) is True for flag in flags)
    }
    for name, field_name in (
        ("context_window", "max_input_tokens"),
        ("max_output_tokens", "max_output_tokens"),
    ):
        most = entry.get(field_name)
        if isinstance(most, int) and not isinstance(most, bool) and most > 0:
            found[name] = most
    regions = entry.get("supported_regions")
    # "global" names no place that a request could ask for.
    if isinstance(regions, list) and (named := [one for one in regions if one != "global"]):
        found["regions"] = named
    return found


def _date(text: object) -> date | None:
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        return None


def find(prices: Mapping[str, Listed], name: str) -> Listed | None:
    """Return a model's entry; the list omits some providers: `openai/gpt-4o` is `gpt-4o`."""
    return prices.get(name) or prices.get(name.partition("/")[2])


def plan(
    prices: Mapping[str, Listed],
    models: Mapping[str, Mapping[str, Json]],
    *,
    only: str | None,
    today: date,
) -> list[Change]:
    """Return the changes that an import would make.

    Args:
        models: the portfolio as it is declared.
        only: a pattern of names, for these models of the list, new ones included; None: the models
            of the portfolio.
    """
    names = (
        list(models)
        if only is None
        else sorted({name for name in (*prices, *models) if fnmatchcase(name, only)})
    )
    return [_change(name, models.get(name), find(prices, name), today=today) for name in names]


def _change(
    name: str, model: Mapping[str, Json] | None, listed: Listed | None, *, today: date
) -> Change:
    before = (
        None
        if model is None
        else {field: model[field] for field in ("input_price_per_m", "output_price_per_m")}
    )
    by_hand = model is not None and model.get(IMPORTED) != before
    if listed is None:
        return Change(name, before, None, "is not in LiteLLM's list")
    declared = None if model is None else model.get("offers")
    theirs = declared is None or declared == (model or {}).get(IMPORTED_OFFERS)
    news = listed.offers if theirs and listed.offers != (declared or {}) else None
    old = {name: model[name] for name in CACHE_FIELDS if name in (model or {})} if model else {}
    by_list = not old or old == (model or {}).get(IMPORTED_CACHE)
    cache = listed.cache if by_list and listed.cache and listed.cache != old else None
    unsaid = (
        "its context window is not in the list" if not listed.offers.get("context_window") else None
    )
    return Change(
        name,
        before,
        listed,
        _doubt(before, listed, today=today),
        kept=by_hand and listed.prices != before,
        offers=news,
        cache=cache,
        note="; ".join(filter(None, (listed.doubt, unsaid))) or None,
    )


def _doubt(before: Mapping[str, float] | None, listed: Listed, *, today: date) -> str | None:
    if listed.deprecated is not None and listed.deprecated <= today:
        return f"is deprecated since {listed.deprecated}"
    if 0.0 in listed.prices.values() and (before is None or listed.prices != before):
        return "is listed with a price of 0"
    for name, price in listed.prices.items():
        was = price if before is None else before[name]
        if was != price and not (was and price and 1 / JUMP <= price / was <= JUMP):
            return f"jumps from ${was:g} to ${price:g} per million"
    return None
