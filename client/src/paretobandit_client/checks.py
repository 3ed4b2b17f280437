"""Refuse single values that the service would refuse, before anything is sent."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct, structs
from msgspec.json import encode

from paretobandit_client import bounds
from paretobandit_client.sent_events import Needs, Signals
from paretobandit_client.text import mended

MAX_METADATA_BYTES = 65_536
"""Largest metadata, in bytes of JSON (the wire contract)."""
MAX_AHEAD = timedelta(minutes=5)
"""Longest time that `observed_at` may be ahead of the clock (the wire contract)."""
STATUSES = frozenset({"ok", "error", "timeout", "rate_limited", "refused", "cancelled", "gone"})
"""Outcomes of a call (the wire contract)."""
UNANSWERED = STATUSES - {"ok", "refused"}
"""Outcomes after which another model may be called."""
_ROUTER_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""Pattern of a router's id (the wire contract)."""


def router_id(value: str) -> str:
    """Return a router's id. Raises ValueError."""
    if not isinstance(value, str) or not _ROUTER_ID.fullmatch(value):
        raise ValueError(f"{value!r} is not a router id: 1 to 128 of A-Z a-z 0-9 . _ -")
    return value


def url(value: str) -> str:
    """Return the address of a gateway. Raises ValueError."""
    if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", value):
        raise ValueError(
            f"{value!r} is not the address of a gateway: http://HOST:PORT or https://HOST"
        )
    return value


def model(value: str) -> str:
    """Return the name of a model. Raises ValueError."""
    return bounds.name("model", value)


def seconds(value: float) -> float:
    """Return a time limit. Raises ValueError."""
    found = bounds.plain(value, whole=False)
    if found is None or not 0.0 < found < math.inf:
        raise ValueError(f"{value!r} is not a time limit: seconds above 0")
    return found


def utc(time: datetime | None) -> datetime | None:
    """Return a time in UTC. Raises ValueError for one without a zone, or that is still to come."""
    if time is None:
        return None
    if not isinstance(time, datetime):
        raise ValueError(f"observed_at must be a datetime, not {type(time).__name__}")
    if time.tzinfo is None:
        raise ValueError("observed_at has no zone: datetime.now(timezone.utc) has one")
    if time - datetime.now(UTC) > MAX_AHEAD:
        raise ValueError(f"observed_at is in the future: {time.isoformat()}")
    return time.astimezone(UTC)


def needs(value: Needs | Mapping[str, object] | None) -> Needs | None:
    """Return the needs of a request. Raises ValueError for unknown ones."""
    given = _fields_of(Needs, value, "needs", such_as="{'vision': True}")
    if given is None:
        return None
    fields: dict[str, Any] = {field: _need(field, value) for field, value in given.items()}
    return Needs(**fields)


def signals(value: Signals | Mapping[str, object] | None) -> Signals | None:
    """Return the signals about an answer. Raises ValueError for unknown signals."""
    given = _fields_of(Signals, value, "signals", such_as="{'tests_passed': 0.5}")
    if given is None:
        return None
    fields: dict[str, Any] = {field: field_value(field, value) for field, value in given.items()}
    return Signals(**fields)


def _fields_of(
    kind: type[Struct], value: object, what: str, *, such_as: str
) -> Mapping[str, object] | None:
    """Return the fields of a part of a request. Raises ValueError for another value."""
    if value is None:
        return None
    given = structs.asdict(value) if isinstance(value, kind) else value
    if not isinstance(given, Mapping):
        raise ValueError(f"{what} must be a mapping, such as {such_as}, not {given!r}")
    if unknown := given.keys() - set(kind.__struct_fields__):
        raise ValueError(f"no such field of {what}: {', '.join(sorted(map(str, unknown)))}")
    return given


def field_value(field: str, value: object) -> object:
    """Return the value of a field as it is sent. Whether None and an empty id are allowed depends
    on the event, see `checked_events`. Raises ValueError.
    """
    if value is None and field not in REQUIRED:
        return None
    if field in bounds.NUMBERS:
        return bounds.number(field, value)
    if field == "request_id" and value == "":
        return value
    if field in bounds.NAMES:
        return bounds.name(field, value)
    return _OTHERS[field](value) if field in _OTHERS else value


def _need(field: str, value: object) -> object:
    if field in bounds.NUMBERS or field in bounds.NAMES:
        return field_value(field, value)
    flag = bounds.own(value)
    if not isinstance(flag, bool):
        raise ValueError(f"{field} must be True or False, not {value!r}")
    return flag


def _prompt(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"prompt must be a text, not {type(value).__name__}")
    return mended(str.__str__(value))


def _context(value: object) -> tuple[float, ...]:
    # An array's own list holds Python's numbers, which are checked fastest.
    each = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(each, str | bytes | Mapping) or not isinstance(each, Iterable):
        raise ValueError(f"context must be numbers, not {type(value).__name__}")
    found = [bounds.plain(one, whole=False) for one in each]
    numbers = tuple(one for one in found if one is not None and math.isfinite(one))
    if len(numbers) < len(found):
        raise ValueError("context must hold finite numbers only")
    if not 2 <= len(numbers) <= bounds.DIMENSIONS or numbers[-1] != 1.0:
        raise ValueError(
            f"context must be 2 to {bounds.DIMENSIONS} numbers, and 1.0 the last one of them"
        )
    return numbers


def _allowed_models(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            f"allowed_models must be names of models, such as ['small'], not {value!r}"
        )
    try:
        models = tuple(bounds.name("model", one) for one in value)
    except ValueError as error:
        raise ValueError(f"allowed_models: {error}") from None
    if not 1 <= len(models) <= bounds.MODELS:
        raise ValueError(f"allowed_models must be 1 to {bounds.MODELS} models, not {len(models)}")
    return models


def _verifiers(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"verifiers must be names of verifiers, such as ['tests'], not {value!r}")
    found = tuple(bounds.name("verifier", one) for one in value)
    if len(found) > bounds.VERIFIERS:
        raise ValueError(f"verifiers must be at most {bounds.VERIFIERS}, not {len(found)}")
    return found


def _verdicts(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"verdicts must be numbers by verifiers, not {value!r}")
    found = {bounds.name("verifier", name): bounds.verdict(one) for name, one in value.items()}
    if len(found) > bounds.VERIFIERS:
        raise ValueError(f"verdicts must be at most {bounds.VERIFIERS}, not {len(found)}")
    return found


def _metadata(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError(f"metadata must be a mapping, not {type(value).__name__}")
    try:
        found = bounds.json_value(value)
        size = len(encode(found))
    except (ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata must be JSON: {error}") from None
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"metadata must be at most {MAX_METADATA_BYTES} bytes of JSON, not {size}")
    return found


def _status(value: object) -> str:
    if not isinstance(value, str) or value not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(sorted(STATUSES))}, not {value!r}")
    return value


REQUIRED = frozenset({"request_id", "revision", "router_id", "source", "verdict", "verifier"})
"""Fields that no event of theirs can do without."""
_OTHERS: Mapping[str, Callable[[Any], object]] = {
    "allowed_models": _allowed_models,
    "context": _context,
    "metadata": _metadata,
    "needs": needs,
    "observed_at": utc,
    "prompt": _prompt,
    "router_id": router_id,
    "signals": signals,
    "status": _status,
    "verdicts": _verdicts,
    "verifiers": _verifiers,
}
"""Check of each field that is neither a number nor a name."""
