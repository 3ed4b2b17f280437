"""A request's record as bytes and back, and what a router's books need of one that stays packed."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import orjson
from msgspec import convert, structs, to_builtins

from router_state.cache_price import CachePrice
from router_state.config import Price
from router_state.kernel import Candidates
from router_state.packing.framing import Json, frame, loads, reading
from router_state.plan import Plan
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
"""Fields of a request's record, in their order, for good."""

_SCALARS_OF = attrgetter(*RECORD_SCALARS)
"""Reads all of them in one call: every event writes a record."""

_LABEL_OF = attrgetter("reward", "source", "rank", "revision", "forgotten")


def pack_record(record: RequestRecord) -> bytes:
    """Return a request's record without its context, which is kept apart."""
    return frame(
        orjson.dumps(
            [
                *_SCALARS_OF(record),
                [record.price.input_price_per_m, record.price.output_price_per_m],
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
    """Return a bill; a third entry says that another call may have to be paid for."""
    if bill is None:
        return None
    return (bill.cost_usd, bill.revision, True) if bill.open else (bill.cost_usd, bill.revision)


def _seen(found: Candidates | None) -> list[Json] | None:
    """Return what a record keeps of candidates: not their doubts, as older programs could not read
    them."""
    if found is None:
        return None
    return [found.models, found.terms, found.penalty, found.excluded]


def _optional(record: RequestRecord) -> list[Json]:
    """Return what a record has only where it is used; older programs read the first of them."""
    if record.call is not None:
        return [record.answered_by, record.input_tokens, to_builtins(record.call)]
    if record.input_tokens is not None:
        return [record.answered_by, record.input_tokens]
    return [] if record.answered_by is None else [record.answered_by]


def _call(packed: dict[str, Json]) -> Call:
    found, cache, plan = dict(packed), packed.get("cache"), packed.get("plan")
    if cache is not None:
        found["cache"] = CachePrice(**cache)
    if plan is not None:
        found["plan"] = convert(plan, Plan)
    return Call(**found)


class Outline(NamedTuple):
    """The part of a request that a router's books need."""

    request_id: str
    seq: int
    decided_at: float
    is_awaited: bool


def outline(request_id: str, data: bytes) -> Outline:
    """Return what the books need of a packed request, without unpacking the rest. Raises
    CorruptSnapshot."""
    with reading("request"):
        fields = loads(data)
        # By position: nothing else of a record is needed at a start, which reads a hundred thousand
        # of them.
        bill, _, expired = fields[len(RECORD_SCALARS) + 2 : len(RECORD_SCALARS) + 5]
        seq, decided_at = (
            fields[RECORD_SCALARS.index("seq")],
            fields[RECORD_SCALARS.index("decided_at")],
        )
        return Outline(request_id, seq, decided_at, (bill is None or len(bill) > 2) and not expired)


def unpack_record(data: bytes) -> RequestRecord:
    """Invert `pack_record`. Raises CorruptSnapshot."""
    with reading("request"):
        fields = loads(data)
        price, candidates, bill, label, expired, applied, *optional = fields[len(RECORD_SCALARS) :]
        answered_by, input_tokens, call = [*optional, None, None, None][:3]
        decided: list[Json] = [
            *fields[: len(RECORD_SCALARS)],
            Price(*price),
            None,
            None if candidates is None else Candidates(tuple(candidates[0]), *candidates[1:]),
            None if applied is None else Basis(*applied),
            input_tokens,
        ]
        record = RequestRecord(*decided)
        record.bill = None if bill is None else Settlement(*bill)
        record.label = None if label is None else Label(*label)
        record.expired, record.answered_by = expired, answered_by
        record.call = None if call is None else _call(call)
        return record
