"""The bounds of every number and name that the service takes, and the plain values of Python's,
numpy's and Decimal's numbers.

A test holds the tables to the service's own schemas (`tests/client/test_bounds.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real

from paretobandit_client.text import is_valid, mended

Plain = int | float


@dataclass(frozen=True, slots=True)
class Span:
    """A number from `low` to `high`; `whole`: an integer."""

    high: float
    low: float = 0
    whole: bool = False

    def __str__(self) -> str:
        span = f"in [{self.low:g}, {self.high:,.0f}]"
        return f"is a whole number {span}" if self.whole else f"lies {span}"


TOKENS = Span(1_000_000_000, whole=True)
DAY_MS = Span(86_400_000.0)
NUMBERS: Mapping[str, Span] = {
    "attempt": Span(15, whole=True),
    "cached_input_tokens": TOKENS,
    "cost_usd": Span(1000.0),
    "first_token_ms": DAY_MS,
    "input_tokens": TOKENS,
    "latency_ms": DAY_MS,
    "max_price_per_1k": Span(1e6),
    "max_retention_days": Span(36_500.0),
    "output_tokens": TOKENS,
    "repeats": Span(1000, whole=True),
    "retry_after_seconds": Span(86_400.0),
    "revision": Span(2**53 - 1, whole=True),
    "reward": Span(1.0),
    "session_budget_usd": Span(1e6, low=1e-6),
    "severity": Span(1.0),
    "tests_passed": Span(1.0),
    "verdict": Span(1.0),
}
"""Bounds of each numeric field, whatever event it is in."""
NAMES: Mapping[str, int] = {
    "follows": 128,
    "answered_by": 200,
    "model": 200,
    "region": 128,
    "request_id": 128,
    "session_id": 128,
    "source": 128,
    "verifier": 128,
}
"""Most characters of each field that names something; the least is 1, all printable."""
MODELS, DIMENSIONS, VERIFIERS = 1000, 1024, 8
"""Most models of `allowed_models`, numbers of a context, and verifiers of a request."""
FAR = 2.0**70
"""Number beyond all bounds of whole numbers."""
INT64 = Span(2**64 - 1, low=-(2**63), whole=True)
"""Integers that metadata may hold."""


def number(name: str, value: object) -> Plain:
    """Return the number of a field, as JSON has it. Raises ValueError that names the field.

    Numpy's scalars and Decimal are taken, also where a whole number is meant: columns and databases
    hold counts so. True, 4.0 and "4" are none of Python's whole numbers, and refused as the service
    refuses them.
    """
    span = NUMBERS[name]
    found = plain(value, whole=span.whole)
    if found is None or not span.low <= found <= span.high:
        raise ValueError(f"{name} {span}, not {_shown(value)}")
    return found


def verdict(value: object) -> float:
    """Return a verdict, True and False as 1 and 0. Raises ValueError."""
    said = own(value)
    return float(said if isinstance(said, bool) else number("verdict", said))


def plain(value: object, *, whole: bool) -> Plain | None:
    """Return a number as Python's own; None for a value that is no number or, with `whole`, no
    whole number.

    >>> plain(Decimal("4"), whole=True), plain(Decimal("0.1"), whole=False), plain(4.0, whole=True)
    (4, 0.1, None)
    """
    if isinstance(value, float) and not whole:
        return float(value)
    if whole and type(value) in (int, float):
        return value if isinstance(value, int) else None
    value = own(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        near = float(value)
        # A Decimal may have more digits than fit into memory as an integer.
        if not whole or not abs(near) < FAR:
            return None if whole else near
        found = int(value)  # type: ignore[arg-type]  # all that are registered can do so
        return found if found == value else None
    except (ArithmeticError, ValueError):  # not finite
        return None


def own(value: object) -> object:
    """Return Python's own value of a scalar of numpy's, or of an array of no dimensions."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def name(field: str, value: object) -> str:
    """Return the text of a field that names something. Raises ValueError that names the field."""
    longest = NAMES[field]
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not value.isprintable():
        why = " of valid Unicode" if isinstance(value, str) and not is_valid(value) else ""
        raise ValueError(
            f"{_shown(value)} is not a {field}: 1 to {longest} printable characters{why}"
        )
    return str.__str__(value)  # of numpy's and an enum's own texts as well


def json_value(value: object) -> object:
    """Return a value of metadata with plain numbers and valid Unicode. Raises ValueError for a
    number that is not finite, or beyond 64 bits.
    """
    value = own(value)
    if isinstance(value, str):
        return mended(str.__str__(value))
    if isinstance(value, Mapping):
        return {json_value(key): json_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return value
    whole = isinstance(value, Integral)
    found = plain(value, whole=whole)
    is_json = found is not None and (
        INT64.low <= found <= INT64.high if whole else abs(found) < math.inf
    )
    if not is_json:
        raise ValueError(f"{_shown(value)} is not a number of JSON")
    return found


def _shown(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < 2**64 else "an integer of more than 64 bits"
    if isinstance(value, float):
        return f"{value:,g}" if abs(value) >= 1e3 else repr(value)
    return repr(value)[:200]
