"""Explain in words what is wrong with a field and what is right, from one of pydantic's errors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ground.json_values import Document

LONGEST_NUMBER = 25
"""Characters of a number that a message quotes: a 64-bit float has at most 24."""

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number with a decimal point"),
    (str, "a text"),
    ((list, tuple), "an array"),
    (dict, "an object"),
)
"""JSON's name for each type of value; bool comes before int, because it is one to Python."""
_TYPES = {
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dict_type": "an object",
    "string_type": "a text",
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "datetime_type": "an RFC 3339 time",
}
"""Type that a value must have, by the code of an error about its type."""
_LENGTHS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "string_too_short": lambda ctx: f"must have at least {_count(ctx['min_length'], 'character')}",
    "string_too_long": lambda ctx: f"must have at most {_count(ctx['max_length'], 'character')}",
    "too_short": lambda ctx: f"must have at least {_count(ctx['min_length'], 'value')}",
    "too_long": lambda ctx: f"must have at most {_count(ctx['max_length'], 'value')}",
    "string_pattern_mismatch": lambda ctx: f"must match the pattern {ctx['pattern']}",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "enum": lambda ctx: f"must be {ctx['expected']}",
}
"""Length that a text or an array must have, from the context of an error."""
_SAID = {
    "missing": "is missing",
    "json_invalid": "is not JSON in strict UTF-8",
    "finite_number": "is not finite; it must be a finite number",
}
"""Phrases for errors that need no context."""
BOUNDS = {
    "greater_than_equal": "minimum",
    "less_than_equal": "maximum",
    "greater_than": "exclusiveMinimum",
    "less_than": "exclusiveMaximum",
}
"""Codes of errors about a number's bounds, and the bounds' names in JSON Schema."""
_CONTEXT = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
"""Key of an error's context that holds the bound, by the bound's name."""


def what_is_wrong(error: Mapping[str, Any], schemas: Sequence[Document] = ()) -> str:
    """Return what is wrong with a field, and what is right; it follows the field's name.

    Of the value it quotes nothing but a number that is out of its bounds: never a text.

    Args:
        error: one of pydantic's, as `ValidationError.errors` returns it.
        schemas: the JSON Schemas of the fields of this name; they have both of a number's bounds.
    """
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    if kind in _SAID:
        return _SAID[kind]
    if kind in _TYPES:
        return f"is {_kind_of(value)}; it must be {_TYPES[kind]}"
    if kind in BOUNDS:
        return f"{_quoted(value)}must be {_bounds(BOUNDS[kind], context, schemas)}"
    if kind in _LENGTHS:
        return _LENGTHS[kind](context)
    return "has a value that is not allowed"


def explained(kind: str) -> bool:
    """Tell whether `what_is_wrong` says more of this kind of error than that there is one."""
    return any(kind in known for known in (_SAID, _TYPES, BOUNDS, _LENGTHS))


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}" if many == 1 else f"{many:,} {what}s"


def _kind_of(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "something else")


def _quoted(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    # Not `repr` first: Python refuses to write integers of thousands of digits.
    short = abs(value) < 10**LONGEST_NUMBER
    return f"is {value!r}; it " if short and len(repr(value)) <= LONGEST_NUMBER else ""


def _bounds(broken: str, context: Mapping[str, Any], schemas: Sequence[Document]) -> str:
    own = {broken: context[_CONTEXT[broken]]}
    known = [bounds for schema in schemas if (bounds := _bounds_in(schema)).items() >= own.items()]
    # Fields of one name may have several bounds; then only the broken one is sure.
    bounds = known[0] if known and all(one == known[0] for one in known) else own
    if bounds.keys() == {"minimum", "maximum"}:
        return f"between {_number(bounds['minimum'])} and {_number(bounds['maximum'])}"
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    return " and ".join(
        f"{words[name]} {_number(bounds[name])}" for name in words if name in bounds
    )


def _bounds_in(schema: Document) -> dict[str, Any]:
    """Return the bounds of a field's schema; one of several forms has them in an alternative."""
    found = {name: schema[name] for name in BOUNDS.values() if name in schema}
    for form in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= _bounds_in(form)
    return found


def _number(bound: float) -> str:
    return f"{int(bound):,}" if bound == int(bound) else f"{bound:g}"
