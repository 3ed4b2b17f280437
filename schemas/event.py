"""The base of every event, and the way between an event and the bytes of its record."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ground.json_text import halved, is_whole
from ground.json_values import Document, Json
from ground.texts import NOT_UNICODE
from schemas.fields import RouterId, path_of
from schemas.reasons import Reason
from schemas.sentences import BOUNDS, what_is_wrong

E = TypeVar("E", bound="Value")
_KEY: TypeAdapter[str] = TypeAdapter(RouterId)
"""Checks the key of a tombstone, which has no value to check."""

CONTENT = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False)
"""Rules for reading all events: exact types, finite numbers, unknown fields ignored."""


class Content(BaseModel):
    """An event, or a part of one. It is immutable once it was checked."""

    model_config = CONTENT


class Value(Content):
    """The value of one record; `key_name` is the field that is the record's key. Text of the fields
    `written_by_people` is mended where it is not valid Unicode; in other fields it is refused.
    """

    key_name: ClassVar[str] = "router_id"
    written_by_people: ClassVar[frozenset[str]] = frozenset()

    @property
    def key(self) -> str:
        """The key of its record."""
        raise NotImplementedError


class Event(Value):
    """The value of one record that is a router's."""

    router_id: RouterId

    @property
    def key(self) -> str:
        """The key of its record."""
        return self.router_id


class MalformedEvent(ValueError):
    """The event cannot be read, and never will be.

    The message says what is wrong and what is right. Of the event's values it quotes only a number
    that is out of its bounds, so it is safe in headers and logs.
    """

    retriable: ClassVar[bool] = False

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def optional(description: str | None = None) -> Any:
    """Default a field to None and leave it out of the record while it is None."""
    return Field(default=None, exclude_if=_is_none, description=description)


def documented(
    topic: str, *, valid: list[Json], invalid: Mapping[Reason, Json], key: str = "router_id"
) -> ConfigDict:
    """Attach examples to a schema: values that decode, and values that are refused, by reason."""
    refused = [{"reason": reason.value, "value": value} for reason, value in invalid.items()]
    extra: Document = {
        "x-topic": topic,
        "x-key": key,
        "x-version": 1,
        "examples": valid,
        "x-refused": refused,
    }
    return ConfigDict(json_schema_extra=extra)


def decode(model: type[E], raw: bytes | None) -> E:
    """Read one event from the value of its record.

    Strict UTF-8 without BOM. If a key is repeated, its last value counts. Half of a character in
    what people wrote is replaced, see `ground.json_text`.

    Raises:
        MalformedEvent: with the reason for the dead letter.
    """
    if raw is None:
        raise MalformedEvent(Reason.MALFORMED_EVENT, "the value is null")
    try:
        event = model.__pydantic_validator__.validate_json(raw)
    except ValidationError as error:
        if (mended := _mended(model, raw)) is not None:
            return decode(model, mended)
        raise _explain(model, error) from None
    # The parser takes NaN and Infinity for numbers wherever no field looks at them; prompts may
    # well speak of them.
    if b"NaN" in raw or b"Infinity" in raw:
        _refuse_constants(raw)
    return event  # type: ignore[no-any-return]


def decode_keyed(model: type[E], *, key: bytes | None, value: bytes | None) -> E:
    """Read one event and check that its record's key, where there is one, is its router's.

    Raises:
        MalformedEvent: as `decode`, or `wrong_key`.
    """
    event = decode(model, value)
    if key is not None and key != event.key.encode():
        raise MalformedEvent(Reason.WRONG_KEY, f"the key is not the {event.key_name} of the value")
    return event


def decode_declared(
    model: type[E], *, key: bytes | None, value: bytes | None
) -> tuple[str, E | None]:
    """Read a declaration of a compacted topic, and return its key and the declaration; None where
    its value is null, which removes what was declared.

    Raises:
        MalformedEvent: as `decode`; `wrong_key` also where there is no key.
    """
    if value is not None:
        if key is None:
            raise MalformedEvent(Reason.WRONG_KEY, "the record has no key")
        declared = decode_keyed(model, key=key, value=value)
        return declared.key, declared
    try:
        return _KEY.validate_python((key or b"").decode()), None
    except (ValidationError, UnicodeDecodeError):
        raise MalformedEvent(Reason.WRONG_KEY, f"the key is not a {model.key_name}") from None


def encode(event: Value) -> bytes:
    """Write an event as compact JSON: what `decode` reads back as an equal event."""
    return event.__pydantic_serializer__.to_json(event)


def _mended(model: type[Value], raw: bytes) -> bytes | None:
    """Return an event without halves of characters; None if it holds none. Raises MalformedEvent
    for one in an id or a name.
    """
    found = halved(raw)
    if found is None:
        return None
    document, mended = found
    for name in document.keys() & (model.model_fields.keys() - model.written_by_people):
        if not is_whole(document[name]):
            raise MalformedEvent(_reason("string_unicode", (name,)), f"{name} {NOT_UNICODE}")
    return mended


def _is_none(value: object) -> bool:
    return value is None


def _refuse_constants(raw: bytes) -> None:
    def refuse(_: str) -> NoReturn:
        raise MalformedEvent(Reason.NON_FINITE, "NaN and Infinity are not JSON")

    try:
        json.loads(raw.decode(), parse_constant=refuse)
    except (json.JSONDecodeError, RecursionError):
        raise MalformedEvent(Reason.MALFORMED_JSON, "is not JSON") from None


_OWN_KINDS = {reason.value: reason for reason in Reason}
"""Reasons that this contract's own validators raise, by name."""
_REASON_OF_TYPE = {
    "json_invalid": Reason.MALFORMED_JSON,
    "missing": Reason.MISSING_FIELD,
    "finite_number": Reason.NON_FINITE,
    **_OWN_KINDS,
}
"""Reason for each type of pydantic's errors; any other is an invalid field."""
_REASON_OF_RANGE = {
    "cost_usd": Reason.COST_OUT_OF_RANGE,
    "input_tokens": Reason.COST_OUT_OF_RANGE,
    "output_tokens": Reason.COST_OUT_OF_RANGE,
    "reward": Reason.REWARD_OUT_OF_RANGE,
    "verdict": Reason.VERDICT_OUT_OF_RANGE,
}
"""Reason for each field that is out of its bounds."""
_REASON_OF_FIELD = {"context": Reason.WRONG_CONTEXT, "prior": Reason.WRONG_PRIOR}
"""Reason for each field, whatever is wrong with it."""


def _explain(model: type[Value], error: ValidationError) -> MalformedEvent:
    """Turn the first of the errors into a reason and a message, see `MalformedEvent`."""
    first = error.errors(include_url=False)[0]
    kind, path = first["type"], path_of(first["loc"])
    schemas = _field_schemas(model)
    # Our own validators speak in fixed sentences; what pydantic says may quote any value.
    if kind in _OWN_KINDS:
        what = first["msg"]
    else:
        what = what_is_wrong(first, schemas.get(str(path[-1]) if path else "", ()))
    where = _where(path, schemas.keys())
    # A sentence about the whole event, as of our own validators, has its subject.
    subject = where or ("" if kind in _OWN_KINDS else "the value")
    return MalformedEvent(_reason(kind, path), f"{subject} {what}".lstrip())


def _where(path: tuple[int | str, ...], names: Collection[str]) -> str:
    """Return the path of a field; names that a client chose are left out."""
    of_key = path[-1:] == ("[key]",)
    parts = path[:-2] if of_key else path
    where = ".".join(str(part) if isinstance(part, int) or part in names else "*" for part in parts)
    return f"a name in {where}" if of_key else where


def _reason(kind: str, path: tuple[int | str, ...]) -> Reason:
    if kind in _REASON_OF_TYPE:
        return _REASON_OF_TYPE[kind]
    if not path:
        return Reason.MALFORMED_EVENT
    if kind in BOUNDS and path[0] in _REASON_OF_RANGE:
        return _REASON_OF_RANGE[str(path[0])]
    return next(
        (_REASON_OF_FIELD[part] for part in map(str, path) if part in _REASON_OF_FIELD),
        Reason.INVALID_FIELD,
    )


@cache
def _field_schemas(model: type[Value]) -> Mapping[str, Sequence[Document]]:
    """Collect the fields of a schema and its parts: their names, which are all that a message may
    repeat of a path, and the schemas of the fields of each name.
    """
    found: dict[str, list[Document]] = {}

    def walk(schema: object) -> None:
        if isinstance(schema, list):
            for part in schema:
                walk(part)
        elif isinstance(schema, dict):
            own = schema.get("properties")
            for name, field in own.items() if isinstance(own, dict) else ():
                found.setdefault(name, []).append(field)
            for part in schema.values():
                walk(part)

    schema = model.model_json_schema()
    walk({part: schema.get(part, {}) for part in ("properties", "$defs")})
    return found
