"""Answer requests: one decision or one dead letter each, even if events come again. Requests whose
router is not declared yet wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from functools import partial

import numpy as np

from agents.group import Answers, Batch, chunks
from agents.partition.partition import Partition
from agents.partition.poison import try_alone
from agents.publishing.published_values import route_value
from agents.refusal_kinds import Refusal, TooManyInFlight, UnknownRouter
from agents.requests.book_feedback import apply_waiting
from agents.requests.request_contexts import Prepared, context_of, needs_encoding, prepare
from agents.table.parking import Parked
from agents.taking.core_events import asked
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

UNDECLARED = (
    "no router of this id was declared: look at router_id (`pbstream routers list`), or declare one"
)
"""Text of the refusal of a request whose router is not declared in time."""
LOOK_EVERY, LOOKS = 0.02, 250
"""Seconds between two checks whether declarations are in force, and the number of checks: after
five seconds a request waits like one of an undeclared router.
"""


class RouteRequests(Batch):
    """Decide which model answers each request.

    Reads `pb.requests` (key router_id). Writes the router's state, the request's record and its
    context to `router_states`, then `pb.routes`. The same request_id gets the same decision again
    with `repeat` true, whatever its body is. An event that is delivered again after a crash gets
    exactly the same answer. Dead letters: all reasons of `RequestSubmitted`, `unknown_router` after
    a wait, `wrong_context`, `encoder_unavailable`, `empty_portfolio`, `no_allowed_model`,
    `no_affordable_model`, `too_many_in_flight`, and the reasons for which capabilities refuse
    requests (`schemas/reasons.py`).
    """

    __slots__ = ("_looks", "_partition", "_refused", "_requests", "_strays")
    name = "requests"

    def __init__(self, partition: Partition, messages: list[Record]) -> None:
        super().__init__(messages)
        batch = partition.take_in(messages, Request, name=_named)
        self._partition, self._looks = partition, LOOKS if batch.unknown else 0
        self._strays, self._refused = batch.strays, batch.refused
        self._requests = [
            Prepared(t.message, t.event, t.error or given(t.event)) for t in batch.taken
        ]

    def preparation(self) -> Coroutine[object, object, None] | None:
        """Return the work that must be awaited: for declarations on the log, and for the
        encoder.
        """
        if self._looks and _may_be_declared(self._requests, self._partition):
            return self._look_again()
        if any(
            request.x is None and needs_encoding(request, self._partition)
            for request in self._requests
        ):
            return self._encode()
        return None

    def apply(self, answers: Answers) -> None:
        """Decide the batch's requests."""
        answers.strays += self._strays
        answers.refused += self._refused
        for request in self._requests:
            answers.at = request.message
            decide(request, self._partition, answers)

    async def _look_again(self) -> None:
        # A worker that comes back reads its backlogs side by side, and the number of waiting
        # requests is limited. So declarations on the log come into force first.
        self._looks -= 1
        await asyncio.sleep(LOOK_EVERY)

    async def _encode(self) -> None:
        self._requests = await prepare(self._requests, self._partition)


def given(event: Request) -> Vector | None:
    """Return the context that a request carries."""
    said = event.context
    return None if said is None else np.fromiter(said, float, len(said))


def _may_be_declared(requests: list[Prepared], partition: Partition) -> bool:
    """Tell whether the router of any request is unknown, and may be declared on the log."""
    return any(
        request.event.router_id not in partition.routers for request in requests
    ) and partition.lags("routers")


def _named(message: Message) -> Request | None:
    """Return the ids of a request that can't be decoded, if they can be read: the request may
    already have its answer.
    """
    try:
        named = decode_keyed(RequestNamed, key=message.key, value=message.value)
    except MalformedEvent:
        return None
    return Request(router_id=named.router_id, request_id=named.request_id)


def decide(request: Prepared, partition: Partition, answers: Answers) -> None:
    """Answer one request, let it wait for its router, or refuse it. Feedback that waited for the
    decision is applied right after it.
    """
    message, event = request.message, request.event
    parking, engine = partition.parking, partition.routers.engine(event.router_id)
    known = None if engine is None else engine.records.get(event.request_id)
    contained = request.parked is None and partition.watermarks.is_applied(
        message.topic, message.offset
    )
    if (
        engine is not None
        and known is not None
        and not (contained and known.offset > message.offset)
    ):
        # If the event is read again after a crash, or after its wait, this is still the first
        # answer.
        _answer(request, known, engine, partition, answers, repeat=known.offset != message.offset)
        return
    if contained:  # it waits, or was refused; a later request may have been decided under its id
        return
    # Earlier requests of the router wait although its declaration is in force: `route_waiting` is
    # about to answer them, and then this one.
    waiting = parking.waiting
    behind = request.parked is None and (event.router_id, None) in waiting
    try:
        if isinstance(request.x, MalformedEvent):
            raise request.x
        if engine is None:
            partition.routers.require_readable(event.router_id)
        if (engine is None or behind) and len(parking) < partition.ports.limits.parked_events:
            parking.park(_parked(request, partition, UnknownRouter(UNDECLARED)))
            return
        if engine is None:
            raise UnknownRouter(UNDECLARED)
        record = _decided(request, engine, partition)
    except (MalformedEvent, RouterStateError, Refusal) as error:
        partition.refuse_later(_parked(request, partition, error), error, answers)
        return
    _answer(request, record, engine, partition, answers, repeat=False)
    if not waiting:  # nearly always
        return
    subjects = [event.request_id]
    if event.session_id is not None:
        subjects.append(subject_of(None, event.session_id))
    for subject in subjects:
        if (event.router_id, subject) in waiting:
            apply_waiting(event.router_id, subject, partition, answers)


def _decided(request: Prepared, engine: Engine, partition: Partition) -> RequestRecord:
    """Return the decision on a request. Raises the request's refusal."""
    event = request.event
    moved = asked(
        event,
        _context(request, engine, partition),
        offset=request.message.offset,
        contained=partition.watermarks.both(*partition.feedback_topics),
    )
    changes = partition.routers.apply(event.router_id, moved, now=partition.clock())
    if changes.refusal is not None:
        raise changes.refusal
    record = changes.decision
    assert record is not None
    partition.count(f"decided_{record.reason}")
    return record


def _context(request: Prepared, engine: Engine, partition: Partition) -> Vector:
    """Return the context on which a request is decided. Raises a refusal if there is none."""
    if engine.state.in_flight >= partition.ports.limits.in_flight_per_router:
        raise TooManyInFlight(
            f"{engine.state.in_flight} requests of this router await their bill "
            "(PB_IN_FLIGHT_PER_ROUTER)"
        )
    return (
        request.x if isinstance(request.x, np.ndarray) else context_of(request, engine, partition)
    )


def _answer(
    request: Prepared,
    record: RequestRecord,
    engine: Engine,
    partition: Partition,
    answers: Answers,
    *,
    repeat: bool,
) -> None:
    """Answer a request with its decision."""
    event, parked = request.event, request.parked
    # Most requests have no trace.
    is_traced = parked is not None or getattr(request.message, "headers", None)
    trace: Headers = trace_of_message(request.message) if is_traced else ()
    since = engine.state.since.led_to(record.seq)
    # The steps are stored for an answer that is sent again after a crash.
    if since is None and not repeat:
        since = UNKNOWN
    value = route_value(event.router_id, event.request_id, record, repeat=repeat, since=since)
    answers.routes.append((event.router_id, value, trace))
    if parked is not None:
        partition.parking.answer(parked)
        answers.answered_later.append(parked)


def _parked(request: Prepared, partition: Partition, error: Exception) -> Parked:
    if request.parked is not None:
        return request.parked
    due = partition.clock() + partition.ports.limits.unknown_router_wait
    return Parked.of(
        request.message, error, router_id=request.event.router_id, due=due, private=True
    )


async def route_waiting(router_ids: Collection[str], partition: Partition) -> None:
    """Answer the requests that waited for routers which are declared now, and the requests of these
    routers that came meanwhile: a router's requests are decided in the order of their topic. Raises
    Gone.
    """
    async with partition.encoding_waiting:
        last = -1
        while waiting := _waiting(sorted(set(router_ids)), partition, after=last):
            last = max(parked.offset for parked in waiting)
            most = partition.ports.limits.batch_size
            for portion in chunks(waiting, lambda _: 1, limit=most):
                await try_alone(
                    portion, partial(_decide_waiting, partition), partition.refuse_failed
                )


def _waiting(router_ids: list[str], partition: Partition, *, after: int) -> list[Parked]:
    """Return the requests behind an offset that wait for these routers."""
    return [
        parked
        for router_id in router_ids
        for parked in partition.parking.waiting_for(router_id, None)
        if parked.offset > after
    ]


async def _decide_waiting(partition: Partition, portion: list[Parked]) -> None:
    """Decide a portion of waiting requests; refuse those that can't be read any more."""
    batch = partition.take_in(portion, Request)
    prepared = await prepare(
        [Prepared(t.message, t.event, given(t.event), t.message) for t in batch.taken], partition
    )
    async with partition.lane.group() as answers:
        # A request may have been answered or refused between the look and the turn.
        for parked, error in batch.refused:
            if partition.parking.is_waiting(parked):
                partition.refuse_later(parked, error, answers)
        for request in prepared:
            if partition.parking.is_waiting(request.message):
                answers.at = request.message
                decide(request, partition, answers)


def is_being_answered(parked: Parked, partition: Partition) -> bool:
    """Tell whether an event is a request whose router is known by now."""
    return parked.request_id is None and parked.router_id in partition.routers
