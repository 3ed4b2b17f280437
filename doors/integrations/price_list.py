"""Read LiteLLM's list of prices without importing LiteLLM: prices and offers of a model, the prices
that a declaration can't hold, and why a model is left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from doors.integrations.price_notes import beside, deprecation, positive, tiers
from ground import extras
from ground.json_values import Json
from schemas.fields import MAX_PRICE_PER_M, MAX_TOKENS

FILE = "model_prices_and_context_window_backup.json"
"""File of prices in LiteLLM's wheel."""
TALKING = frozenset({"chat", "completion", "responses"})
"""Modes of LiteLLM's models that answer prompts."""
CACHE = {
    "cached_input_price_per_m": "cache_read_input_token_cost",
    "cache_write_price_per_m": "cache_creation_input_token_cost",
}
"""Field of the list for each price of cached input in a declaration."""
CAN = {
    "vision": ("supports_vision",),
    "audio": ("supports_audio_input",),
    "tools": ("supports_function_calling",),
    "json_output": ("supports_response_schema", "supports_native_structured_output"),
}
"""Capabilities by the list's flags; the list leaves out unknown ones."""
PER_CALL = {
    "input_cost_per_request": "per request",
    "input_cost_per_second": "per second",
    "output_cost_per_second": "per second",
    "input_cost_per_character": "per character",
    "output_cost_per_character": "per character",
}
"""Prices of a whole call that no price per token can stand for, in words."""


class NoPriceList(Exception):
    """LiteLLM is not installed, or has no list of prices."""

    reason = "no_price_list"
    retriable = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A model of the list: dollars per million tokens, and the date of its deprecation.

    Attributes:
        notes: sentences on prices and offers of the model that are left out or look wrong.
        doubt: why a person has to confirm it, whatever is declared.
        price_above: prices of long inputs, as a declaration has them.
    """

    name: str
    input_price_per_m: float
    output_price_per_m: float
    deprecated: date | None
    offers: Mapping[str, Json] = field(default_factory=dict)
    cache: Mapping[str, Json] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    doubt: str | None = None
    price_above: tuple[Mapping[str, Json], ...] = ()

    def others(self, today: date) -> dict[str, Json]:
        """Return further fields of a declaration: prices of long inputs, and a date to come."""
        found: dict[str, Json] = {}
        if self.price_above:
            found["price_above"] = [dict(one) for one in self.price_above]
        if self.deprecated is not None and self.deprecated > today:
            found["retires_at"] = self.deprecated.isoformat()
        return found

    @property
    def prices(self) -> dict[str, float]:
        """Return the prices as fields of a declaration."""
        return {
            "input_price_per_m": self.input_price_per_m,
            "output_price_per_m": self.output_price_per_m,
        }


class PriceList(dict[str, Listed]):
    """The models of a list that can be declared; `left_out` says why others can't."""

    def __init__(self) -> None:
        super().__init__()
        self.left_out: dict[str, str] = {}


class _Object(dict[str, Json]):
    """A JSON object that remembers which of its keys came twice, with other values."""

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        self.twice = {name for name, value in pairs if value != self[name]}


class _LeftOut(Exception):
    """A model of the list can't be declared."""


def read_list(path: Path | None = None) -> PriceList:
    """Return every model of the list that answers with text and has a price for each token.

    Raises:
        NoPriceList: LiteLLM is not installed, or its list of prices can't be read.
    """
    # Found and not imported: importing LiteLLM takes seconds, and reads settings of its own.
    found = find_spec("litellm") if path is None else None
    if path is None and (found is None or found.origin is None):
        raise NoPriceList(f"LiteLLM is not installed: {extras.command('litellm')}")
    path = path or Path(str(found and found.origin)).parent / FILE
    try:
        entries = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_Object)
    except (OSError, ValueError) as error:
        raise NoPriceList(f"cannot read LiteLLM's list of prices: {error}") from error
    if not isinstance(entries, _Object):
        raise NoPriceList("LiteLLM's list of prices is not a JSON object of models")
    prices = PriceList()
    for name, entry in entries.items():
        if not isinstance(entry, _Object) or not _talks(entry):
            continue
        try:
            prices[name] = _listed(name, entry, is_twice=name in entries.twice)
        except _LeftOut as why:
            prices.left_out[name] = str(why)
    return prices


def _talks(entry: Mapping[str, Json]) -> bool:
    """Tell whether a model answers prompts, as far as its mode says."""
    mode = entry.get("mode")
    return mode in TALKING if isinstance(mode, str) else "input_cost_per_token" in entry


def _listed(name: str, entry: _Object, *, is_twice: bool) -> Listed:
    _require_price_per_token(entry)
    into, out = (_price(entry, f"{side}_cost_per_token") for side in ("input", "output"))
    cache, cache_note = _cache(entry, into)
    offers, offers_notes = _offers(entry)
    deprecated, date_note = deprecation(entry.get("deprecation_date"))
    above, above_note = tiers(entry, into, out)
    notes = (cache_note, *offers_notes, date_note, above_note, beside(entry))
    again = f"has {', '.join(sorted(entry.twice))} twice" if entry.twice else None
    again = "is twice" if is_twice else again
    doubt = None if again is None else f"{again} in the list, with other values"
    present = tuple(filter(None, notes))
    return Listed(name, into, out, deprecated, offers, cache, present, doubt, tuple(above))


def _require_price_per_token(entry: Mapping[str, Json]) -> None:
    """Raise _LeftOut for a model whose calls have no one price per token."""
    if not isinstance(entry.get("mode"), str):
        raise _LeftOut("the list does not say what it does (no mode)")
    if "tiered_pricing" in entry:
        raise _LeftOut("it is priced by tiers of input (tiered_pricing), and a model has one price")
    per = dict.fromkeys(PER_CALL[name] for name in PER_CALL if positive(entry.get(name)))
    if per:
        raise _LeftOut(f"it is priced {' and '.join(per)}, and a model has a price per token")


def _price(entry: Mapping[str, Json], name: str) -> float:
    """Return a price per million tokens. Raises _LeftOut."""
    price = entry.get(name)
    if price is None:
        raise _LeftOut(f"it has no {name}")
    if isinstance(price, bool) or not isinstance(price, int | float):
        kind = "a text" if isinstance(price, str) else "no number"
        raise _LeftOut(f"its {name} is {kind} in the list: {json.dumps(price)[:50]}")
    if not math.isfinite(price) or price < 0:
        raise _LeftOut(f"its {name} is {price:g} in the list")
    # Rounded, since a price per token times a million seldom is the decimal number that was meant.
    per_m = round(float(price) * 1e6, 9)
    if per_m > MAX_PRICE_PER_M:
        raise _LeftOut(
            f"its {name} is ${per_m:,.0f} per million, and at most ${MAX_PRICE_PER_M:,.0f} can be "
            "declared"
        )
    return per_m


def _cache(entry: Mapping[str, Json], input_per_m: float) -> tuple[dict[str, Json], str | None]:
    """Return an entry's prices of cached input, and a note; prices in doubt are left out."""
    found: dict[str, Json] = {}
    zero = set()
    for name, listed in CACHE.items():
        price = entry.get(listed)
        if isinstance(price, str):
            return {}, f"its {listed} is a text in the list, and left out"
        if not isinstance(price, int | float) or isinstance(price, bool):
            continue
        if 0.0 < price <= MAX_PRICE_PER_M / 1e6:
            found[name] = round(float(price) * 1e6, 9)
        elif price == 0.0 and input_per_m > 0.0:
            zero.add(name)
    if "cached_input_price_per_m" not in found:
        free = "cached_input_price_per_m" in zero
        return {}, "its cached price is 0 in the list, and left out" if free else None
    if found["cached_input_price_per_m"] > input_per_m:
        return {}, "its cached price is above its input price in the list"
    if isinstance(least := entry.get("prompt_cache_min_tokens"), int) and 0 < least <= MAX_TOKENS:
        found["cache_min_tokens"] = least
    if "cache_write_price_per_m" in zero:
        # Taken as nothing extra: a write that is free altogether would make all input free.
        return found, "its cache write price is 0 in the list, so writes cost its input price"
    return found, None


def _offers(entry: Mapping[str, Json]) -> tuple[dict[str, Json], list[str]]:
    """Return an entry's capabilities, by the names of a declaration, and notes."""
    found: dict[str, Json] = {
        name: True for name, flags in CAN.items() if any(entry.get(flag) is True for flag in flags)
    }
    notes = []
    for name, field_name in (
        ("context_window", "max_input_tokens"),
        ("max_output_tokens", "max_output_tokens"),
    ):
        most = entry.get(field_name)
        if most is not None and _is_count(most):
            found[name] = int(most)
        elif most is not None:
            what = "a text" if isinstance(most, str) else "no count of tokens"
            notes.append(f"its {field_name} is {what} in the list, and left out")
    if "context_window" not in found and not notes:
        notes.append("its context window is not in the list")
    regions = entry.get("supported_regions")
    if isinstance(regions, list) and (named := [one for one in regions if _is_place(one)]):
        found["regions"] = named[:100]
    return found, notes


def _is_place(name: Json) -> bool:
    # "global" names no place that a request could ask for.
    is_label = isinstance(name, str) and 0 < len(name) <= 128 and name.isprintable()
    return is_label and name != "global"


def _is_count(most: Json) -> bool:
    if isinstance(most, bool) or not isinstance(most, int | float):
        return False
    return 0 < most <= MAX_TOKENS and most == int(most)
