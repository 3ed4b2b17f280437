"""Read what a call used: its tokens, and its dollars where a span has them.

The conventions' `gen_ai.usage.cost.amount` and `.currency` are a proposal as of November 2026
(pull request 443 of open-telemetry/semantic-conventions-genai).
"""

from __future__ import annotations

from doors.integrations.otel_names import AMOUNT, CACHED, CURRENCY, INPUT, OUTPUT, first_of
from doors.integrations.payload_items import NothingHere, Unconvertible, number
from ground.json_values import Document, Json
from schemas import Reason


def usage_of(attributes: Document) -> Document:
    """Return the fields of a bill that say what a call used.

    Raises:
        Unconvertible: the span has neither dollars nor tokens, another currency, or a value that is
            no number.
    """
    tokens = {
        "input_tokens": _count(first_of(attributes, INPUT), "input_tokens"),
        "output_tokens": _count(first_of(attributes, OUTPUT), "output_tokens"),
    }
    unpriced = all(count is None for count in tokens.values())
    dollars = _dollars(attributes, tokens_known=None not in tokens.values())
    if unpriced and dollars is None:
        raise NothingHere(
            f"{INPUT[0]}: is missing, as are every older name of it and {AMOUNT}",
            Reason.MISSING_FIELD,
        )
    cached = {"cached_input_tokens": first_of(attributes, CACHED)}
    return {"cost_usd": dollars, **tokens, **cached}


def _dollars(attributes: Document, *, tokens_known: bool) -> float | None:
    """Return the dollars of a span. An amount without a currency counts only as far as tokens do
    not say the same: who priced it, and in what, is not known."""
    if (amount := attributes.get(AMOUNT)) is None:
        return None
    currency = attributes.get(CURRENCY)
    if currency is None and tokens_known:
        return None
    if str(currency).upper() != "USD":
        raise Unconvertible(
            f"{CURRENCY}: is {currency or 'missing'}: bills are in US dollars (USD)",
            Reason.INVALID_FIELD,
        )
    return number(amount, AMOUNT)


def _count(value: Json, name: str) -> Json:
    """Return a count of tokens, which some exporters write as text or as a double."""
    if value is None:
        return None
    count = number(value, name)
    return int(count) if count.is_integer() else count
