"""Numbers as people read them, in terminals and reports; `assets/format.js` writes them alike."""

from __future__ import annotations

NO_PRICE = "no price meets the budget"
"""Text for a λ_t that has no finite value."""
UNTIL = (
    "The cheapest model is called until bills say that a model costs less than the budget, or "
    "the debt is paid."
)
"""Sentence about what follows from such a λ_t, and how it ends."""


def number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """Write a number: so many decimals, none from a thousand on; zero has no sign."""
    if value is None:
        return "–"
    # The z of the pattern leaves no "-0.000" of what is rounded to nothing.
    sign = "+" if signed else ""
    text = f"{value:{sign}z,.0f}" if abs(value) >= 1000 else f"{value:{sign}z.{digits}f}"
    return text.replace("-", "−")


def usd(amount: float | None) -> str:
    """Write dollars: four digits that count, plain from a cent on."""
    if amount is None:
        return "–"
    size = abs(amount)
    return f"{'−' * (amount < 0)}${f'{size:,.2f}' if size >= 100 else f'{size:.4g}'}"


def dual(lambda_t: float | None, digits: int = 4) -> str:
    """Write λ_t: a number, or in words that no number is high enough."""
    from router_state.pacing.dollar_dual import UNREACHABLE  # brings numpy along

    if lambda_t is not None and lambda_t >= UNREACHABLE:
        return NO_PRICE
    plain = lambda_t is None or lambda_t >= 1000
    return number(lambda_t) if plain else f"{lambda_t:.{digits}g}"


def dual_in_words(lambda_t: float) -> str:
    """Return what happens while no price of a dollar meets the budget; else nothing."""
    return f"λ_t: {NO_PRICE}. {UNTIL}" if dual(lambda_t) == NO_PRICE else ""


def seconds(milliseconds: float) -> str:
    """Write a time: milliseconds below a second, else seconds."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    lasted = milliseconds / 1000
    return f"{lasted:.3g} s" if lasted < 1000 else f"{lasted:,.0f} s"
