"""Read requests, bills and rewards where every microsecond counts: into typed structs, in a fifth
of the full schema's time.

The schema is the truth. What a struct does not take as it stands is read again with the schema: for
the reason, or because only that understands it. A struct takes nothing that its schema refuses, and
reads the same from it, which a property test holds (`tests/unit/test_schemas_quick.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder

from schemas.costs import (
    MAX_COST_USD,
    MAX_MILLISECONDS,
    MAX_RETRY_SECONDS,
    CostReported,
    Status,
)
from schemas.event import Event, MalformedEvent, decode_keyed
from schemas.fields import LARGEST_INT, MAX_METADATA_BYTES, MAX_TOKENS, utc_of
from schemas.prompt_length import input_tokens
from schemas.reasons import Reason
from schemas.requests import (
    MAX_DIMENSIONS,
    MAX_PROMPT_BYTES,
    MAX_SESSION_USD,
    MIN_SESSION_USD,
    RequestSubmitted,
)
from schemas.rewards import RewardObserved, subject_of

Q = TypeVar("Q", bound="Quick")

RouterId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,128}\Z")]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
ModelName = Annotated[str, Meta(min_length=1, max_length=200)]
Revision = Annotated[int, Meta(ge=0, le=LARGEST_INT)]
Tokens = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
Number = Annotated[int, Meta(ge=-LARGEST_INT, le=LARGEST_INT)]
Plain = str | bool | Number | float | None
"""Values of metadata that need no check by the schema."""
NOT_QUICK = (MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError)
"""Errors of reading a struct from bytes that it does not take; TypeError for a value that is
null."""


class Quick(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """An event of a request, its values as in its schema."""

    schema: ClassVar[type[Event]]

    router_id: RouterId
    request_id: Label

    @property
    def subject(self) -> str:
        """Return what the event is about."""
        return self.request_id

    def check(self, raw: bytes) -> None:
        """Raise ValueError for what the types alone don't say."""
        _printable(self.request_id)


class Usage:
    """The tokens of a bill."""

    __slots__ = ()
    input_tokens: int | None
    output_tokens: int | None

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Return input and output tokens, where both are known."""
        into, out = self.input_tokens, self.output_tokens
        return None if into is None or out is None else (into, out)


class Needs(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """See `schemas.capabilities.Needs`."""

    vision: bool = False
    audio: bool = False
    tools: bool = False
    json_output: bool = False
    output_tokens: Tokens | None = None
    region: Label | None = None
    max_retention_days: Annotated[float, Meta(ge=0.0, le=36_500.0)] | None = None


class Request(Quick, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """See `RequestSubmitted`."""

    schema = RequestSubmitted

    prompt: str | None = None
    context: Annotated[tuple[float, ...], Meta(min_length=2, max_length=MAX_DIMENSIONS)] | None = (
        None
    )
    allowed_models: Annotated[tuple[ModelName, ...], Meta(min_length=1, max_length=1000)] | None = (
        None
    )
    max_price_per_1k: Annotated[float, Meta(ge=0.0, le=1e6)] | None = None
    input_tokens: Tokens | None = None
    metadata: dict[str, Plain] | None = None
    session_id: Label | None = None
    session_budget_usd: Annotated[float, Meta(ge=MIN_SESSION_USD, le=MAX_SESSION_USD)] | None = None
    needs: Needs | None = None

    @property
    def tokens_before(self) -> int | None:
        """Return the input tokens as far as they are known before the call: as said, else by the
        prompt's length."""
        prompt = self.prompt
        return self.input_tokens if prompt is None else input_tokens(self.input_tokens, prompt)

    def check(self, raw: bytes) -> None:
        """Raise ValueError for what the types alone don't say."""
        _printable(self.request_id, self.session_id, *(self.allowed_models or ()))
        if self.needs is not None:
            _printable(self.needs.region)
        if self.context is None:
            prompt = self.prompt
            if not prompt or prompt.isspace() or 4 * len(prompt) > MAX_PROMPT_BYTES:
                raise ValueError("no prompt, or a long one")
        elif self.context[-1] != 1.0:
            raise ValueError("the bias is not 1.0")
        if self.metadata is not None and len(raw) > MAX_METADATA_BYTES:
            raise ValueError("long metadata")
        if self.session_budget_usd is not None and self.session_id is None:
            raise ValueError("the budget of no session")


class Bill(Quick, Usage, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """See `CostReported`."""

    schema = CostReported

    cost_usd: Annotated[float, Meta(ge=0.0, le=MAX_COST_USD)] | None = None
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cached_input_tokens: Tokens | None = None
    model: ModelName | None = None
    revision: Revision = 0
    status: Status | None = None
    retry_after_seconds: Annotated[float, Meta(ge=0.0, le=MAX_RETRY_SECONDS)] | None = None
    latency_ms: Annotated[float, Meta(ge=0.0, le=MAX_MILLISECONDS)] | None = None
    first_token_ms: Annotated[float, Meta(ge=0.0, le=MAX_MILLISECONDS)] | None = None

    def check(self, raw: bytes) -> None:
        """Raise ValueError for what the types alone don't say."""
        _printable(self.request_id, self.model)
        if self.cost_usd is None and self.tokens is None:
            raise ValueError("neither dollars nor tokens")
        cached, tokens = self.cached_input_tokens, self.input_tokens
        if cached is not None and tokens is not None and cached > tokens:
            raise ValueError("more cached tokens than tokens")


class Reward(Quick, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """See `RewardObserved`; the time stands as it was written."""

    schema = RewardObserved

    # Not checked where it is absent: of a whole session.
    request_id: Label = ""
    session_id: Label | None = None
    reward: Annotated[float, Meta(ge=0.0, le=1.0)]
    source: Label
    model: ModelName | None = None
    revision: Revision = 0
    observed_at: str | None = None

    def check(self, raw: bytes) -> None:
        """Raise ValueError for what the types alone don't say."""
        if not self.request_id and self.session_id is None:
            raise ValueError("neither request nor session")
        _printable(self.request_id, self.session_id, self.source, self.model)
        if self.observed_at is not None:
            utc_of(self.observed_at)

    @property
    def subject(self) -> str:
        """Return what was judged, see `RewardObserved.subject`."""
        return subject_of(self.request_id, self.session_id)

    @property
    def at(self) -> datetime | None:
        """Return when the answer was judged, where that is known."""
        return None if self.observed_at is None else utc_of(self.observed_at)


_DECODE: dict[type[Quick], Callable[[Any], Any]] = {
    kind: Decoder(kind).decode for kind in (Request, Bill, Reward)
}
"""Decoders, made once because a decoder compiles its type."""


def read(kind: type[Q], *, key: bytes | None, value: bytes | None) -> Q:
    """Read one event and check that its record's key, where there is one, is its router's.

    Raises:
        MalformedEvent: as `schemas.event.decode_keyed`.
    """
    event = quickly(kind, value)
    if event is None:
        return _struct_of(kind, decode_keyed(kind.schema, key=key, value=value))
    if key is not None and key != event.router_id.encode():
        raise MalformedEvent(Reason.WRONG_KEY, "the key is not the router_id of the value")
    return event


def quickly(kind: type[Q], value: bytes | None) -> Q | None:
    """Return an event, or None where its schema has to read it."""
    try:
        event: Q = _DECODE[kind](value)
        event.check(value or b"")
    except NOT_QUICK:
        return None
    return event


def _printable(*texts: str | None) -> None:
    for text in texts:
        if text is not None and not text.isprintable():
            raise ValueError("not printable")


def _struct_of(kind: type[Q], event: Event) -> Q:
    """Return an event that only its schema could read."""
    fields = {name: getattr(event, name) for name in kind.__struct_fields__}
    if isinstance(event, RequestSubmitted) and event.needs is not None:
        fields["needs"] = Needs(**event.needs.model_dump())
    if isinstance(event, RewardObserved):
        fields["request_id"] = event.request_id or ""
        if event.observed_at is not None:
            fields["observed_at"] = event.observed_at.isoformat()
    return kind(**fields)
