"""Read requests, bills and rewards where every microsecond counts: into structs, in half of the
time that their schemas take.

A schema is the truth, and its struct is derived from it (`schemas/deriving.py`). What a struct does
not take as it stands is read again with the schema: for the reason of a refusal, or because only
the schema understands it. `tests/schemas/test_quick.py` compares both on drawn JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder

from schemas.costs import CostReported
from schemas.deriving import Twin, twin_of
from schemas.event import Event, MalformedEvent, decode_keyed
from schemas.fields import MAX_METADATA_BYTES
from schemas.reasons import Reason
from schemas.requests import RequestSubmitted
from schemas.rewards import RewardObserved

Q = TypeVar("Q", bound=Event)
NOT_QUICK = (MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError)
"""Errors of a value that a struct does not take; TypeError is that of a null."""
WRITTEN_SHORTER = 4
"""Most bytes to which one received byte of free JSON grows where its length is measured: `1e15`
becomes `1000000000000000.0`."""

_TWINS: dict[type[Event], Twin] = {
    model: twin_of(model) for model in (RequestSubmitted, CostReported, RewardObserved)
}
SCHEMA_OF: dict[type, type[Event]] = {twin.struct: model for model, twin in _TWINS.items()}
"""Schemas, by the structs that are derived from them."""
if TYPE_CHECKING:
    # A struct has its schema's fields and properties, by the same names and of the same types.
    Request: TypeAlias = RequestSubmitted
    Bill: TypeAlias = CostReported
    Reward: TypeAlias = RewardObserved
else:
    Request, Bill, Reward = SCHEMA_OF
Reader: TypeAlias = Callable[[bytes | None], Any]
"""Reads the value of a record."""


def _none(value: bytes | None) -> None:
    """Read nothing."""


def _quickly(twin: Twin, otherwise: Reader = _none) -> Reader:
    """Return a reader of values into a twin's struct; `otherwise` reads what that does not take."""
    decode: Callable[[Any], Any] = Decoder(twin.struct).decode
    check, free = twin.check, twin.free

    def quickly(value: bytes | None) -> Any:
        try:
            event = check(decode(value))
        except NOT_QUICK:
            return otherwise(value)
        if WRITTEN_SHORTER * len(value or b"") > MAX_METADATA_BYTES:
            for name in free:
                if getattr(event, name) is not None:
                    return otherwise(value)
        return event

    return quickly


_QUICKLY: dict[type[Any], Reader] = {twin.struct: _quickly(twin) for twin in _TWINS.values()}
"""Readers by struct; a decoder compiles its type once."""


def read(kind: type[Q], *, key: bytes | None, value: bytes | None) -> Q:
    """Read one event and check that its record's key, where there is one, is its router's.

    Raises:
        MalformedEvent: as `schemas.event.decode_keyed`.
    """
    event = quickly(kind, value)
    if event is None:
        return _wholly(kind, value, key=key)
    if key is not None and key != event.router_id.encode():
        raise MalformedEvent(Reason.WRONG_KEY, "the key is not the router_id of the value")
    return event


def reader_of(kind: type[Q]) -> Callable[[bytes | None], Q]:
    """Return a `read` of values alone, whose keys are compared elsewhere."""
    return _quickly(_TWINS[SCHEMA_OF[kind]], partial(_wholly, kind))


def quickly(kind: type[Q], value: bytes | None) -> Q | None:
    """Return an event, or None where its schema has to read it."""
    event: Q | None = _QUICKLY[kind](value)
    return event


def _wholly(kind: type[Q], value: bytes | None, *, key: bytes | None = None) -> Q:
    whole = decode_keyed(SCHEMA_OF[kind], key=key, value=value)
    return kind(**{name: getattr(whole, name) for name in type(whole).model_fields})
