"""A request's record as bytes and back, and the outline of a packed record that a router's books
need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import NamedTuple

import orjson
from msgspec import Raw, Struct, structs, to_builtins

from router_state.errors import DamagedState
from router_state.kernel import Candidates
from router_state.packing.framing import Json, Whole, decoded, frame, opened, reader_of
from router_state.packing.price_rows import PriceRow
from router_state.record import Basis, Call, Label, RequestRecord, Settlement

RECORD_SCALARS = (
    "seq",
    "model",
    "reason",
    "propensity",
    "expected_reward",
    "expected_cost_usd",
    "lambda_t",
    "config_offset",
    "decided_at",
    "offset",
)
"""Fields of a request's record, in their order."""

_SCALARS_OF = attrgetter(*RECORD_SCALARS)
"""Reads all of these fields in one call, as every event writes a record."""

_LABEL_OF = attrgetter("reward", "source", "rank", "revision", "forgotten")


def pack_record(record: RequestRecord) -> bytes:
    """Return a request's record as bytes, without its context, which is stored apart."""
    return frame(
        orjson.dumps(
            [
                *_SCALARS_OF(record),
                record.price.row(),
                _seen(record.candidates),
                _bill(record.bill),
                None if record.label is None else _LABEL_OF(record.label),
                record.expired,
                record.applied,
                *_optional(record),
            ],
            default=structs.astuple,
        )
    )


def _bill(bill: Settlement | None) -> tuple[float, int] | tuple[float, int, bool] | None:
    """Return a bill; a third entry says that another call of the plan may still be billed."""
    if bill is None:
        return None
    return (bill.cost_usd, bill.revision, True) if bill.open else (bill.cost_usd, bill.revision)


def _seen(found: Candidates | None) -> list[Json] | None:
    """Return the published numbers of candidates, without their doubts."""
    if found is None:
        return None
    return [found.models, found.terms, found.penalty, found.excluded]


def _optional(record: RequestRecord) -> list[Json]:
    """Return the optional fields, which stand at the end of a record only if they are used."""
    if record.call is not None:
        return [record.answered_by, record.input_tokens, to_builtins(record.call)]
    if record.input_tokens is not None:
        return [record.answered_by, record.input_tokens]
    return [] if record.answered_by is None else [record.answered_by]


class Outline(NamedTuple):
    """The part of a request that a router's books need."""

    request_id: str
    seq: int
    decided_at: float
    is_awaited: bool


class _Bill(Struct, array_like=True, gc=False):
    """A bill; `open` is written only if it is true."""

    cost_usd: float
    revision: Whole
    open: bool = False


class _Books(Struct, array_like=True, gc=False):
    """The fields of a record up to the last one that its outline needs. `Raw` fields are skipped:
    the start of a worker reads a hundred thousand records.
    """

    seq: Whole
    model: Raw
    reason: Raw
    propensity: Raw
    expected_reward: Raw
    expected_cost_usd: Raw
    lambda_t: Raw
    config_offset: Raw
    decided_at: float
    offset: Raw
    price: Raw
    seen: Raw
    bill: _Bill | None
    label: Raw
    expired: bool


class _Record(Struct, array_like=True, gc=False):
    """The fields of a record as stored."""

    seq: Whole
    model: str
    reason: str
    propensity: float
    expected_reward: float
    expected_cost_usd: float
    lambda_t: float
    config_offset: Whole
    decided_at: float
    offset: Whole
    price: PriceRow
    seen: tuple[tuple[str, ...], list[float], list[float], list[str | None]] | None
    bill: _Bill | None
    label: tuple[float, str, Whole, Whole, float] | None
    expired: bool
    applied: tuple[Whole, Whole, Whole, Whole, Whole] | None
    answered_by: str | None = None
    input_tokens: Whole | None = None
    call: Call | None = None


def outline(request_id: str, data: bytes) -> Outline:
    """Return the outline of a packed record without unpacking the rest. Raises DamagedState."""
    number, body = opened(data, "request")
    return Outline(request_id, *reader_of(number, READERS, "request").outline(body))


def unpack_record(data: bytes) -> RequestRecord:
    """Invert `pack_record`. Raises DamagedState."""
    number, body = opened(data, "request")
    return reader_of(number, READERS, "request").record(body)


class Reader(NamedTuple):
    """A reader of records of one format, from the body of their frame.

    Attributes:
        record: function that returns the record; outline: function that returns seq, decided_at
            and is_awaited. Both raise DamagedState.
    """

    record: Callable[[bytes], RequestRecord]
    outline: Callable[[bytes], tuple[int, float, bool]]


def _outlined(body: bytes) -> tuple[int, float, bool]:
    found = decoded(body, _Books, "request")
    is_open = found.bill is None or found.bill.open
    return found.seq, found.decided_at, is_open and not found.expired


def _record(body: bytes) -> RequestRecord:
    kept = decoded(body, _Record, "request")
    seen, bill, label, applied = kept.seen, kept.bill, kept.label, kept.applied
    if seen is not None:
        models, terms, penalty, excluded = seen
        if not len(terms) == 3 * len(penalty) == 3 * len(excluded) == 3 * len(models):
            raise DamagedState(f"request: not {len(models)} candidates")
    fields: list[Json] = [
        *_SCALARS_OF(kept),
        kept.price.price,
        None,
        None if seen is None else Candidates(*seen),
        None if applied is None else Basis(*applied),
        kept.input_tokens,
        None if bill is None else Settlement(bill.cost_usd, bill.revision, bill.open),
        None if label is None else Label(*label),
        kept.expired,
        kept.answered_by,
        kept.call,
    ]
    return RequestRecord(*fields)


READERS: Mapping[int, Reader] = {1: Reader(_record, _outlined)}
"""Readers of records by the number of their format: the present one and the one before. A record
stays in its format until its request changes."""
