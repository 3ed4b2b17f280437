"""Refuse arguments that the service would refuse, before anything is sent."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import ValidationError, convert
from msgspec.json import encode

from paretobandit_client.errors import Refused
from paretobandit_client.events import Ask, Cost, Event, Needs, Reward

E = TypeVar("E", bound=Event)
MAX_PROMPT_BYTES = 2**20
"""Largest prompt, in bytes of UTF-8 (the wire contract)."""
MAX_COST_USD = 1000.0
"""Largest bill of one call, in dollars (the wire contract)."""
STATUSES = frozenset({"ok", "error", "timeout", "rate_limited", "refused", "cancelled"})
"""Outcomes of a call (the wire contract)."""
UNANSWERED = STATUSES - {"ok", "refused"}
"""Outcomes after which another model may be called."""
_ROUTER_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""Pattern of a router's id (the wire contract)."""


def router_id(value: str) -> str:
    """Return a router's id. Raises ValueError."""
    if not _ROUTER_ID.fullmatch(value):
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
    return _printable(value, "model", longest=200)


def seconds(value: float) -> float:
    """Return a time limit. Raises ValueError."""
    if not value > 0.0 or math.isinf(value):
        raise ValueError(f"{value!r} is not a time limit: seconds above 0")
    return value


def utc(time: datetime | None) -> datetime | None:
    """Return a time in UTC. Raises ValueError for one without a zone."""
    if time is None:
        return None
    if time.tzinfo is None:
        raise ValueError("the time has no zone: datetime.now(timezone.utc) has one")
    return time.astimezone(UTC)


def needs(said: Needs | Mapping[str, object] | None) -> Needs | None:
    """Return the needs of a request. Raises ValueError for unknown ones."""
    if isinstance(said, Mapping):
        if unknown := said.keys() - set(Needs.__struct_fields__):
            raise ValueError(f"no such need: {', '.join(sorted(unknown))}")
        try:
            said = convert(said, Needs)
        except ValidationError as error:
            raise ValueError(f"no such need: {error}") from None
    if said is not None:
        if said.region is not None:
            _printable(said.region, "region", longest=128)
        for limit in (said.output_tokens, said.max_retention_days):
            if limit is not None and not 0 <= limit < math.inf:
                raise ValueError(f"{limit!r} is not a limit: a number from 0 on")
    return said


def checked(event: E) -> E:
    """Return an event that can be sent.

    Raises:
        ValueError: a value is out of range; JSON has no NaN and no infinity.
        Refused: the prompt is larger than any service takes.
    """
    if isinstance(event, Reward) and event.session_id is not None:
        _printable(event.session_id, "session_id", longest=128)
    else:
        _printable(event.request_id, "request_id", longest=128)
    match event:
        case Ask():
            _check_ask(event)
        case Cost():
            _check_cost(event)
        case Reward():
            _printable(event.source, "source", longest=128)
            if not 0.0 <= event.reward <= 1.0:
                raise ValueError(f"a reward lies in [0, 1], not {event.reward!r}")
    return event


def _check_ask(event: Ask) -> None:
    if event.prompt is None and event.context is None:
        raise ValueError("give a prompt or a context")
    if event.context is not None and not all(map(math.isfinite, event.context)):
        raise ValueError("a context must hold finite numbers only")
    if event.input_tokens is not None and event.input_tokens < 0:
        raise ValueError("a count of tokens is not negative")
    if event.session_id is not None:
        _printable(event.session_id, "session", longest=128)
    if event.metadata:
        try:
            encode(event.metadata)
        except (TypeError, ValueError) as error:
            raise ValueError(f"metadata must be JSON: {error}") from None
    if event.prompt is not None and event.context is None and _too_large(event.prompt):
        raise Refused(
            "prompt_too_large",
            f"over {MAX_PROMPT_BYTES} bytes of UTF-8",
            router_id=event.router_id,
            request_id=event.request_id,
        )


def _check_cost(event: Cost) -> None:
    usd, tokens = event.cost_usd, (event.input_tokens, event.output_tokens)
    if usd is None and None in tokens:
        raise ValueError("a bill needs cost_usd, or both input_tokens and output_tokens")
    if usd is not None and not 0.0 <= usd <= MAX_COST_USD:
        raise ValueError(f"a bill lies between 0 and {MAX_COST_USD:g} dollars, not {usd!r}")
    cached, into = event.cached_input_tokens, event.input_tokens
    if cached is not None and (cached < 0 or (into is not None and cached > into)):
        raise ValueError("cached tokens are not negative, and not more than the input tokens")
    if any(count is not None and count < 0 for count in tokens):
        raise ValueError("a count of tokens is not negative")
    if event.status is not None and event.status not in STATUSES:
        raise ValueError(f"{event.status!r} is not a status: {', '.join(sorted(STATUSES))}")
    for seconds in (event.retry_after_seconds, event.latency_ms, event.first_token_ms):
        if seconds is not None and not 0.0 <= seconds < math.inf:
            raise ValueError(f"{seconds!r} is not a duration: a number from 0 on")


def _too_large(prompt: str) -> bool:
    return (
        4 * len(prompt) > MAX_PROMPT_BYTES
        and len(prompt.encode(errors="replace")) > MAX_PROMPT_BYTES
    )


def _printable(value: str, what: str, *, longest: int) -> str:
    if not 1 <= len(value) <= longest or not value.isprintable():
        raise ValueError(f"{value[:200]!r} is not a {what}: 1 to {longest} printable characters")
    return value
