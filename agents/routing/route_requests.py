"""Answer requests: one decision or one dead letter each, whatever is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import numpy as np

from agents.feedback.book_feedback import apply_waiting
from agents.feedback.core_events import asked
from agents.group import Answers, Batch
from agents.parked import Parked
from agents.partition.partitions import Service
from agents.publishing.published_values import route_value
from agents.refusal_kinds import Refusal, TooManyInFlight, UnknownRouter
from agents.routing.request_contexts import Prepared, context_of, needs_encoding, prepare
from agents.table.own_routers import Shard
from agents.taking.intake import take_in
from ground.messages import Message, Record, trace_of_message
from ground.traces import Headers
from router_state.config import Vector
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.record import RequestRecord
from router_state.since import UNKNOWN
from schemas.event import MalformedEvent, decode_keyed
from schemas.quick import Request
from schemas.requests import RequestNamed
from schemas.rewards import subject_of

UNDECLARED = "no router of this id was declared"
"""Text of the refusal of a request whose router nobody declares in time."""
LOOK_EVERY, LOOKS = 0.02, 250
"""Seconds between two looks at whether declarations are in force, and the number of looks: after
five seconds a request waits as for an undeclared router."""


class RouteRequests(Batch):
    """Decide which model answers each request.

    Reads `pb.requests` (key router_id). Writes the router's state, the request's record and its
    context to `router_states`, then `pb.routes`. The same request_id gets the same decision again,
    whatever its body, `repeat` true; an event that is delivered again after a crash gets exactly
    the answer it had. Dead letters: everything of `RequestSubmitted`, `unknown_router` after a
    wait, `wrong_context`, `encoder_unavailable`, `empty_portfolio`, `no_allowed_model`,
    `no_affordable_model`, `no_capable_model`, `cap_reached`, `session_spent`, `too_many_in_flight`.
    """

    __slots__ = ("_looks", "_refused", "_requests", "_service", "_strays")
    name = "requests"

    def __init__(self, service: Service, messages: list[Record]) -> None:
        super().__init__(messages)
        batch = take_in(
            messages,
            Request,
            partition_of=service.ports.partition_of,
            max_bytes=service.batch_bytes,
            homes=service.shards.get(messages[0].partition, ()),
            name=_named,
        )
        self._service, self._looks = service, LOOKS if batch.unknown else 0
        self._strays, self._refused = batch.strays, batch.refused
        self._requests = [
            Prepared(t.message, t.event, t.error or given(t.event)) for t in batch.taken
        ]

    def preparation(self) -> Coroutine[object, object, None] | None:
        """Return the work to be awaited: declarations on the log, and the encoder."""
        if self._looks and _may_be_declared(self._requests, self._service):
            return self._look_again()
        if any(
            request.x is None and needs_encoding(request, self._service)
            for request in self._requests
        ):
            return self._encode()
        return None

    def apply(self, answers: Answers) -> None:
        """Decide."""
        answers.strays += self._strays
        answers.refused += self._refused
        for request in self._requests:
            answers.at = request.message
            decide(request, self._service, answers)

    async def _look_again(self) -> None:
        # A worker that comes back reads its backlogs side by side, and only so many requests may
        # wait: declarations that are on the log come into force first.
        self._looks -= 1
        await asyncio.sleep(LOOK_EVERY)

    async def _encode(self) -> None:
        self._requests = await prepare(self._requests, self._service)


def given(event: Request) -> Vector | None:
    """Return the context that a request carries."""
    return None if event.context is None else np.array(event.context)


def _may_be_declared(requests: list[Prepared], service: Service) -> bool:
    """Tell whether the router of a request is unknown, and may be declared on the log."""
    return any(
        (shard := service.shards.get(request.message.partition)) is not None
        and request.event.router_id not in shard
        and service.lags(request.message.partition, "routers")
        for request in requests
    )


def _named(message: Message) -> Request | None:
    """Return the ids of a request that can't be decoded, if they can be read: it may already have
    its answer."""
    try:
        named = decode_keyed(RequestNamed, key=message.key, value=message.value)
    except MalformedEvent:
        return None
    return Request(router_id=named.router_id, request_id=named.request_id)


def decide(request: Prepared, service: Service, answers: Answers) -> None:
    """Answer one request, let it wait for its router, or refuse it. Feedback that waited for its
    decision is applied at once."""
    message, event = request.message, request.event
    shard = service.shards[message.partition]
    engine = shard.engine(event.router_id)
    known = None if engine is None else engine.records.get(event.request_id)
    contained = request.parked is None and shard.watermarks.is_applied(
        message.topic, message.offset
    )
    if (
        engine is not None
        and known is not None
        and not (contained and known.offset > message.offset)
    ):
        # Read again after a crash, or after its wait, it is still the first answer.
        _answer(request, known, engine, shard, answers, repeat=known.offset != message.offset)
        return
    if contained:  # it waits, or was refused; a later request may have been decided under its id
        return
    # Earlier requests of the router wait, its declaration being in force: `route_waiting` is about
    # to answer them, and then this one.
    behind = request.parked is None and (event.router_id, None) in shard.parking.waiting
    try:
        if isinstance(request.x, MalformedEvent):
            raise request.x
        if engine is None:
            shard.require_readable(event.router_id)
        if (engine is None or behind) and len(shard.parking) < service.ports.limits.parked_events:
            shard.park(_parked(request, service, UnknownRouter(UNDECLARED)))
            return
        if engine is None:
            raise UnknownRouter(UNDECLARED)
        record = _decided(request, engine, shard, service)
    except (MalformedEvent, RouterStateError, Refusal) as error:
        service.refuse_later(_parked(request, service, error), error, answers)
        return
    _answer(request, record, engine, shard, answers, repeat=False)
    subjects = [event.request_id]
    if event.session_id is not None:
        subjects.append(subject_of(None, event.session_id))
    for subject in subjects:
        if (event.router_id, subject) in shard.parking.waiting:
            apply_waiting(shard, event.router_id, subject, service, answers)


def _decided(request: Prepared, engine: Engine, shard: Shard, service: Service) -> RequestRecord:
    """Return the decision on a request. Raises its refusal."""
    event = request.event
    moved = asked(
        event,
        _context(request, engine, service),
        offset=request.message.offset,
        contained=shard.watermarks.both(*service.feedback_topics),
    )
    changes = shard.apply(event.router_id, moved, now=service.ports.clock())
    if changes.refusal is not None:
        raise changes.refusal
    record = changes.decision
    assert record is not None
    service.ports.count(f"decided_{record.reason}")
    return record


def _context(request: Prepared, engine: Engine, service: Service) -> Vector:
    """Return the context on which a request is decided. Raises a refusal where it has none."""
    if engine.state.in_flight >= service.ports.limits.in_flight_per_router:
        raise TooManyInFlight(
            f"{engine.state.in_flight} requests of this router await their bill "
            "(PB_IN_FLIGHT_PER_ROUTER)"
        )
    return request.x if isinstance(request.x, np.ndarray) else context_of(request, engine, service)


def _answer(
    request: Prepared,
    record: RequestRecord,
    engine: Engine,
    shard: Shard,
    answers: Answers,
    *,
    repeat: bool,
) -> None:
    """Answer a request with its decision."""
    event, parked = request.event, request.parked
    # Most requests belong to no trace.
    is_traced = parked is not None or getattr(request.message, "headers", None)
    trace: Headers = trace_of_message(request.message) if is_traced else ()
    since = engine.state.since.led_to(record.seq)
    # The steps are kept for an answer that is repeated after a crash.
    if since is None and not repeat:
        since = UNKNOWN
    value = route_value(event.router_id, event.request_id, record, repeat=repeat, since=since)
    answers.routes.append((event.router_id, value, trace))
    if parked is not None:
        shard.parking.answer(parked)
        answers.answered_later.append(parked)


def _parked(request: Prepared, service: Service, error: Exception) -> Parked:
    if request.parked is not None:
        return request.parked
    due = service.ports.clock() + service.ports.limits.unknown_router_wait
    return Parked.of(
        request.message, error, router_id=request.event.router_id, due=due, private=True
    )
