"""Variants of a model: the same model called with other parameters, and what may be said of any
model's prices and of its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from schemas.event import Content, optional
from schemas.fields import ModelName, PricePerM, Tokens, bounded_json, read_time, refuse, utc
from schemas.reasons import Reason

MAX_PARAMS_BYTES = 2_048
"""Largest params, in bytes of JSON: they travel with every decision."""
MAX_PARAMS_DEPTH = 8
"""Most levels of params, their own included."""
MAX_TIERS = 8
"""Most prices of long inputs that a model has."""
MAX_ALIASES = 32
"""Most names by which a model may answer."""


def canonical(params: Mapping[str, object]) -> str:
    """Return params as JSON that is equal for equal params: keys in order, no blanks."""
    return json.dumps(params, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _small(params: dict[str, object]) -> dict[str, object]:
    if _depth(params) > MAX_PARAMS_DEPTH:
        raise refuse(Reason.INVALID_FIELD, f"has more than {MAX_PARAMS_DEPTH} levels")
    found = bounded_json(params)
    if len(canonical(found).encode()) > MAX_PARAMS_BYTES:
        raise refuse(Reason.INVALID_FIELD, "is over 2 KiB of JSON")
    return found


def _depth(value: object) -> int:
    """Return the levels of objects and lists; at most one more than may be."""
    deepest, level = 0, [value]
    while level and deepest <= MAX_PARAMS_DEPTH:
        inner = [one for one in level if isinstance(one, dict | list)]
        deepest += bool(inner)
        level = [
            one for part in inner for one in (part.values() if isinstance(part, dict) else part)
        ]
    return deepest


Params = Annotated[dict[str, object], AfterValidator(_small)]
"""Any JSON object, up to 2 KiB, that goes with the call."""


class LongInputPrice(Content):
    """Price all tokens of a call whose input is longer than a number of tokens."""

    input_tokens: Annotated[Tokens, Field(ge=1)]
    input_price_per_m: PricePerM
    output_price_per_m: PricePerM


def _rising(tiers: tuple[LongInputPrice, ...]) -> tuple[LongInputPrice, ...]:
    if any(after.input_tokens <= before.input_tokens for before, after in pairwise(tiers)):
        raise refuse(Reason.INVALID_FIELD, "the input_tokens of price_above must rise")
    return tiers


PriceAbove = Annotated[
    tuple[LongInputPrice, ...],
    Field(min_length=1, max_length=MAX_TIERS),
    AfterValidator(_rising),
]
"""Prices of long inputs, the shortest first."""


def _day(value: object) -> object:
    """Read a date as the beginning of the day in UTC, or a time."""
    if isinstance(value, str) and len(value) == len("2026-11-27"):
        value = f"{value}T00:00:00Z"
    return read_time(value)


Day = Annotated[datetime, BeforeValidator(_day), AfterValidator(utc)]
"""A date, or an RFC 3339 time in UTC."""
Aliases = Annotated[
    tuple[ModelName, ...], Field(min_length=1, max_length=MAX_ALIASES, fail_fast=True)
]


class VariantCall(Content):
    """Say how a model is called that is a variant of another one, or has parameters."""

    variant_of: ModelName | None = optional(
        "The model that is called where the variant has params; absent: the model itself"
    )
    params: Params | None = optional("What goes with the call; absent: nothing")
