"""Let no number beside a bill's money cause the bill's refusal: a number out of bounds is left out
or cut, and logged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from paretobandit_client.bounds import NAMES, NUMBERS, Span

TIMES = ("latency_ms", "first_token_ms")
TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens")
"""Fields of a bill that are whole numbers; JavaScript and protobuf write 12.0 for 12."""


def fitting(bill: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """Return a bill whose side numbers are in their bounds, and what was left out or cut.

    Tokens are the money of a bill without dollars, and then stay as they are.

    >>> fitting({"cost_usd": 0.01, "latency_ms": -3.0})
    ({'cost_usd': 0.01}, ['latency_ms is not a number from 0 to 86400000, and was left out'])
    """
    kept = {name: value for name, value in bill.items() if value is not None}
    notes = []
    for name in TOKENS:
        value = kept.get(name)
        if isinstance(value, float) and value.is_integer():
            kept[name] = int(value)
    for name in TIMES:
        if name in kept and not _within(kept[name], NUMBERS[name]):
            del kept[name]
            notes.append(
                f"{name} is not a number from 0 to {NUMBERS[name].high:.0f}, and was left out"
            )
    rest, span = kept.get("retry_after_seconds"), NUMBERS["retry_after_seconds"]
    if rest is not None and not _within(rest, span):
        if _within(rest, Span(math.inf)):
            kept["retry_after_seconds"] = span.high
            notes.append(f"retry_after_seconds was cut to {span.high:.0f}")
        else:
            del kept["retry_after_seconds"]
            notes.append("retry_after_seconds is not a number from 0 on, and was left out")
    if "answered_by" in kept and not _is_name(kept["answered_by"]):
        del kept["answered_by"]
        notes.append("answered_by is not the name of a model, and was left out")
    return kept, notes + _without_odd_tokens(kept)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAMES["answered_by"] and value.isprintable()


def _without_odd_tokens(kept: dict[str, object]) -> list[str]:
    """Take out counts of tokens that cannot be, unless they are the money."""
    beside = TOKENS if kept.get("cost_usd") is not None else TOKENS[-1:]
    odd = [name for name in beside if name in kept and not _within(kept[name], NUMBERS[name])]
    for name in odd:
        del kept[name]
    notes = [f"{name} is not a count of tokens, and was left out" for name in odd]
    cached, tokens = kept.get("cached_input_tokens"), kept.get("input_tokens")
    if isinstance(cached, int) and isinstance(tokens, int) and cached > tokens:
        del kept["cached_input_tokens"]
        notes.append("cached_input_tokens are more than input_tokens, and were left out")
    return notes


def _within(value: object, span: Span) -> bool:
    kinds = int if span.whole else int | float
    number = isinstance(value, kinds) and not isinstance(value, bool)
    return number and span.low <= value <= span.high and math.isfinite(value)  # type: ignore[operator,arg-type]
