"""Read dates, and the prices of long inputs, from a list of prices. Note what a declaration can't
hold: separate prices of audio or reasoning tokens, and dates that can't be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime

from ground.json_values import Json

BESIDE = {
    "input_cost_per_audio_token": "input_cost_per_token",
    "output_cost_per_audio_token": "output_cost_per_token",
    "output_cost_per_reasoning_token": "output_cost_per_token",
}
"""Prices of some tokens, and the price that a declaration has for them."""
_TIER = re.compile(r"(input|output)_cost_per_token_above_(\d+)k_tokens")
MOST = 1.0
"""Most dollars of a token that can be declared."""
_DATES = (
    *("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y-%m"),
    *("%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y"),
)
"""Forms of dates beside ISO 8601; of a date that has two readings the earlier counts."""


def positive(value: Json) -> bool:
    """Tell whether a price is a number above 0."""
    return isinstance(value, int | float) and value > 0


def tiers(
    entry: Mapping[str, Json], into: float, out: float
) -> tuple[list[dict[str, Json]], str | None]:
    """Return the prices of long inputs as a declaration has them, and a note on those that can't be
    declared.

    Args:
        into, out: list prices in dollars per million tokens; a side that a tier does not name keeps
            the price before.
    """
    above: dict[int, dict[str, float]] = {}
    for name, price in entry.items():
        tier = _TIER.fullmatch(name)
        if tier is None or price is None:
            continue
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= MOST:
            return [], f"its {name} is not a price in the list, and long inputs are left out"
        above.setdefault(1000 * int(tier[2]), {})[tier[1]] = round(float(price) * 1e6, 9)
    if into + out <= 0.0:
        if not any(price for said in above.values() for price in said.values()):
            return [], None
        return [], "it has prices of long inputs beside prices of 0, which are left out"
    found: list[dict[str, Json]] = []
    for size, said in sorted(above.items()):
        into, out = said.get("input", into), said.get("output", out)
        prices = {"input_price_per_m": into, "output_price_per_m": out}
        found.append({"input_tokens": size, **prices})
    return found, None


def beside(entry: Mapping[str, Json]) -> str | None:
    """Return a note on prices of the list for which a declaration has no field."""
    found = [
        name
        for name, usual in BESIDE.items()
        if positive(entry.get(name)) and entry.get(name) != entry.get(usual)
    ]
    if any(map(positive, _numbers(entry.get("search_context_cost_per_query")))):
        found.append("search_context_cost_per_query")
    return f"{', '.join(found)} in the list: not priced" if found else None


def _numbers(value: Json) -> Iterator[Json]:
    yield from value.values() if isinstance(value, dict) else [value]


def deprecation(said: Json) -> tuple[date | None, str | None]:
    """Return a date in any usual form, and a note where it can't be read."""
    if said is None or said == "":
        return None, None
    text = str(said).strip()
    with suppress(ValueError):
        return datetime.fromisoformat(text).date(), None
    found = []
    for form in _DATES:
        with suppress(ValueError):
            found.append(datetime.strptime(text, form).date())
    if found:
        return min(found), None
    return None, f"its deprecation date can't be read: {text[:50]!r}"
