"""Say what a list of prices holds and a declaration can't: prices of long inputs and of some
tokens, and dates that can't be read.
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
_DATES = (
    *("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y-%m"),
    *("%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y"),
)
"""Forms of dates beside ISO 8601; of a date that has two readings the earlier counts."""


def positive(value: Json) -> bool:
    """Tell whether a price is a number above 0."""
    return isinstance(value, int | float) and value > 0


def tiers(entry: Mapping[str, Json]) -> str | None:
    """Return a note on other prices of long inputs, of which a declaration knows nothing."""
    above: dict[int, list[str]] = {}
    for name, price in entry.items():
        tier = _TIER.fullmatch(name)
        if tier is not None and isinstance(price, int | float):
            side = "in" if tier[1] == "input" else "out"
            above.setdefault(int(tier[2]), []).append(f"${round(price * 1e6, 9):g} {side}")
    if not above:
        return None
    each = (f"{', '.join(said)} above {size}k tokens" for size, said in sorted(above.items()))
    return (
        f"the list has {' and '.join(each)} per million, which is not priced: report such calls in "
        "dollars"
    )


def beside(entry: Mapping[str, Json]) -> str | None:
    """Return a note on other prices of the list that a declaration has no field for."""
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
