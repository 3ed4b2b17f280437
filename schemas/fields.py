"""Types of single fields that several topics share: identifiers, times, money, free JSON."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import orjson
from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from schemas.reasons import Reason

MAX_METADATA_BYTES = 65_536
"""Largest metadata, in bytes of JSON: it travels with a request and is no store."""
LARGEST_INT = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
"""Pattern of a time with its zone, up to nanoseconds."""
_FORM = "\x1f"
"""First character of a form's mark: no name can have it, because it cannot be printed."""


def refuse(reason: Reason, message: str) -> PydanticCustomError:
    """Make the error by which a validator names its reason itself."""
    return PydanticCustomError(reason.value, "{text}", {"text": message})


def form(name: str) -> Tag:
    """Mark one of the forms that a field may have. Pydantic puts the mark into the locations of
    errors, and `path_of` leaves it out.
    """
    return Tag(_FORM + name)


def one_form(name_of: Callable[[object], str | None], **otherwise: str) -> Discriminator:
    """Choose between the forms of a field by name; `otherwise` is the error where there is none."""

    def mark(value: object) -> str | None:
        name = name_of(value)
        return None if name is None else _FORM + name

    return Discriminator(mark, **otherwise)  # type: ignore[arg-type]  # texts, all of them


def path_of(location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the path of a field, as a document has it, from the location of an error."""
    return tuple(part for part in location if not str(part).startswith(_FORM))


def innermost(faults: Mapping[str, str]) -> dict[str, str]:
    """Return the faults, by dotted path, of the innermost fields: pydantic names a wrong part, and
    the whole that holds the part."""
    return {
        path: fault
        for path, fault in faults.items()
        if not any(other.startswith(f"{path}.") for other in faults)
    }


def _printable(text: str) -> str:
    if not text.isprintable():
        raise refuse(Reason.INVALID_FIELD, "has characters that cannot be printed")
    return text


def read_time(value: object) -> object:
    """Read RFC 3339 text; pydantic's strict check of times refuses all other values."""
    if not isinstance(value, str):
        return value
    if not _RFC_3339.fullmatch(value):
        raise refuse(Reason.INVALID_FIELD, "is not an RFC 3339 time, such as 2026-01-31T12:00:00Z")
    try:
        return datetime.fromisoformat(value.upper())
    except ValueError:
        raise refuse(Reason.INVALID_FIELD, "is not a date and time of the calendar") from None


def utc(time: datetime) -> datetime:
    """Return a time whose zone is UTC, which `read_time` has read."""
    if time.tzinfo is UTC:
        return time
    if time.utcoffset() != timedelta(0):
        raise refuse(Reason.INVALID_FIELD, "is not in UTC")
    return time.replace(tzinfo=UTC)


def bounded_json(value: dict[str, object]) -> dict[str, object]:
    """Return a JSON object of bounded size, whose numbers every reader keeps."""
    try:
        if len(orjson.dumps(value)) > MAX_METADATA_BYTES:
            raise refuse(Reason.INVALID_FIELD, "is over 64 KiB of JSON")
        # orjson measures fast but writes null for what is not finite; the standard library says so.
        json.dumps(value, allow_nan=False)
    except TypeError:
        raise refuse(
            Reason.INVALID_FIELD, "is not a JSON object with integers of 64 bits"
        ) from None
    except ValueError as error:
        if isinstance(error, PydanticCustomError):
            raise
        raise refuse(Reason.NON_FINITE, "holds a number that is not finite") from None
    return value


RouterId = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._-]{1,128}$",
        description="Identifier of the router: 1-128 of A-Z a-z 0-9 . _ -",
    ),
]
RequestId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        description="1-128 printable characters, unique within the router",
    ),
    AfterValidator(_printable),
]
ModelName = Annotated[
    str,
    Field(min_length=1, max_length=200, description="Name of a model: 1-200 printable characters"),
    AfterValidator(_printable),
]
Label = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
UtcTime = Annotated[
    datetime,
    BeforeValidator(read_time),
    AfterValidator(utc),
    Field(description="RFC 3339, UTC; finer than a microsecond is cut off"),
]
JsonObject = Annotated[
    dict[str, object],
    AfterValidator(bounded_json),
    Field(description="Any JSON object, up to 64 KiB"),
]

MAX_PRICE_PER_M: Final = 1e6
"""Largest list price, in dollars per million tokens."""
PricePerM = Annotated[
    float, Field(ge=0, le=MAX_PRICE_PER_M, description="US dollars per million tokens; 0 is free")
]
Count = Annotated[int, Field(ge=0, le=LARGEST_INT)]
MAX_TOKENS: Final = 1_000_000_000
"""Most tokens of one call, far beyond any model's context."""
Tokens = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Revision = Annotated[
    int, Field(ge=0, le=LARGEST_INT, description="A higher one replaces a lower one")
]
NonNegative = Annotated[float, Field(ge=0)]
UnitInterval = Annotated[float, Field(ge=0, le=1)]
