"""Write numbers for people, in terminals and reports; `assets/format.js` does the same."""

from __future__ import annotations

import math

NO_PRICE = "no price meets the budget"
"""Text for a λ_t that has no finite value."""
UNTIL = (
    "The cheapest model is called until bills say that a model costs less than the budget, "
    "the debt is paid, or a new period begins."
)
"""Sentence about the consequence of such a λ_t, and how it ends."""


def number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """Write a number with this many decimals, or none from a thousand on; zero has no sign."""
    if value is None:
        return "–"
    # The z of the pattern leaves no "-0.000" of what is rounded to nothing.
    sign = "+" if signed else ""
    if abs(value) >= 1e15:
        return f"{value:{sign}.3g}".replace("-", "−")
    text = f"{value:{sign}z,.0f}" if abs(value) >= 1000 else f"{value:{sign}z.{digits}f}"
    return text.replace("-", "−")


def times(factor: float) -> str:
    """Write a factor with two significant digits, without an exponent up to a million."""
    short = float(f"{factor:.2g}")
    return f"{short:,.0f} times" if 10.0 <= short < 1e6 else f"{short:.2g} times"


def usd(amount: float | None) -> str:
    """Write dollars with four significant digits, plain from a millionth of a dollar on."""
    if amount is None:
        return "–"
    size = abs(amount)
    text = f"{size:,.2f}" if size >= 100 else f"{size:.4g}"
    if "e" in text and size >= 1e-6:
        text = f"{size:.{3 - math.floor(math.log10(size))}f}".rstrip("0")
    return f"{'−' * (amount < 0)}${text.replace('e-0', 'e−').replace('e-', 'e−')}"


def dual(lambda_t: float | None, digits: int = 4) -> str:
    """Write λ_t: a number, or words if no finite value is high enough."""
    from router_state.pacing.dollar_dual import UNREACHABLE

    if lambda_t is not None and lambda_t >= UNREACHABLE:
        return NO_PRICE
    plain = lambda_t is None or lambda_t >= 1000
    return number(lambda_t) if plain else f"{lambda_t:.{digits}g}"


def dual_in_words(lambda_t: float) -> str:
    """Return a sentence about a λ_t that has no finite value; an empty text for any other."""
    return f"λ_t: {NO_PRICE}. {UNTIL}" if dual(lambda_t) == NO_PRICE else ""


def seconds(milliseconds: float) -> str:
    """Write a duration: milliseconds below a second, else seconds."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    lasted = milliseconds / 1000
    return f"{lasted:.3g} s" if lasted < 1000 else f"{lasted:,.0f} s"
