"""Answer requests: one decision or one dead letter each, whatever is repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from agents.answers import Answers
from agents.context_store import Prompt
from agents.feedback import apply_waiting
from agents.intake import take_in
from agents.parked import Parked
from agents.poison import on_behalf_of, try_alone
from agents.portions import portions
from agents.ports import Source
from agents.refusals import (
    EncoderUnavailable,
    PromptTooLarge,
    Refusal,
    TooManyInFlight,
    UnknownRouter,
    WrongDimensions,
)
from agents.service import Service
from agents.wire import route_value
from ground.messages import Message, Record, trace_of_message
from router_state.capabilities import Needs
from router_state.config import Vector
from router_state.engine import Engine
from router_state.errors import RouterStateError
from router_state.events import Asked
from router_state.record import RequestRecord
from router_state.since import UNKNOWN
from schemas.event import MalformedEvent, decode_keyed
from schemas.prompt_length import input_tokens
from schemas.quick import Request
from schemas.requests import RequestNamed

LOOK_EVERY, LOOKS = 0.02, 250
"""Seconds between two looks at whether declarations are in force; together five seconds, then a
request waits for its router as if none was on its way."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with its context: None where it needs none, or why it has none: its body, or the
    encoder."""

    message: Message
    event: Request
    x: Vector | EncoderUnavailable | MalformedEvent | None
    parked: Parked | None = None


async def route_requests(source: Source, service: Service) -> None:
    """Decide which model answers each request.

    Reads `pb.requests` (key router_id). Writes the router's state, the request's record and its
    context to `router_states`, then `pb.routes`. The same request_id gets the same decision again,
    whatever its body, `repeat` true; an event that is delivered again after a crash gets exactly
    the answer it had. Dead letters: everything of `RequestSubmitted`, `unknown_router` after a
    wait, `wrong_context`, `encoder_unavailable`, `empty_portfolio`, `no_allowed_model`,
    `no_affordable_model`, `no_capable_model`, `cap_reached`, `too_many_in_flight`.
    """

    async def step(messages: list[Record]) -> None:
        batch = take_in(
            messages,
            Request,
            partition_of=service.ports.partition_of,
            max_bytes=service.batch_bytes,
            name=_named,
        )
        requests = [Prepared(t.message, t.event, t.error) for t in batch.taken]
        await declared(requests, service)
        # Before the lock: while the encoder works, other agents write.
        prepared = await prepare(requests, service)
        answers = Answers(strays=batch.strays, refused=batch.refused)
        async with service.batch():
            for request in prepared:
                with on_behalf_of(request.message):
                    decide(request, service, answers)
            # Strays and unreadable ones as well: their delivery comes before the ack, and
            # `take_in`, which knows no state, judges them alike when a crash brings them again.
            service.mark_applied(messages)
        await service.answer(answers)
        await route_waiting(answers.declared_meanwhile, service)

    await service.run(source, step)


async def declared(requests: list[Prepared], service: Service) -> None:
    """Let declarations that are on the log come into force first, where a router is unknown: a
    worker that comes back reads its backlogs side by side, and only so many requests may wait."""
    for _ in range(LOOKS):
        if not any(
            (shard := service.shards.get(request.message.partition)) is not None
            and request.event.router_id not in shard
            and service.lags(request.message.partition, "routers")
            for request in requests
        ):
            return
        await asyncio.sleep(LOOK_EVERY)


async def prepare(requests: list[Prepared], service: Service) -> list[Prepared]:
    """Give every request that is to be decided its context; prompts are encoded together, off the
    event loop."""
    prompts = [i for i, request in enumerate(requests) if _needs_encoding(request, service)]
    encoded: dict[int, Vector | EncoderUnavailable] = {}
    if prompts and service.ports.encode is not None:
        contexts = await service.ports.encode([_prompt(requests[i], service) for i in prompts])
        encoded = dict(zip(prompts, contexts, strict=True))
    return [
        request
        if request.x is not None
        # Not `replace`, which takes twice as long.
        else Prepared(
            request.message, request.event, encoded.get(i, _given(request.event)), request.parked
        )
        for i, request in enumerate(requests)
    ]


def _named(message: Message) -> Request | None:
    """Return of a request that can't be decoded whose it is, if that can be read: it may be one
    that has its answer."""
    try:
        named = decode_keyed(RequestNamed, key=message.key, value=message.value)
    except MalformedEvent:
        return None
    return Request(router_id=named.router_id, request_id=named.request_id)


def _given(event: Request) -> Vector | None:
    return None if event.context is None else np.array(event.context)


def _prompt(request: Prepared, service: Service) -> Prompt:
    engine = service.shard(request.message.partition).engine(request.event.router_id)
    assert engine is not None
    named = engine.state.config.projection
    return request.event.prompt or "", engine.state.arms.d if named is None else named


def _needs_encoding(request: Prepared, service: Service) -> bool:
    event, shard = request.event, service.shard(request.message.partition)
    if (
        request.x is not None
        or event.context is not None
        or event.router_id not in shard
        or _is_too_large(event, service)
    ):
        return False
    engine = shard.engine(event.router_id)
    return (
        engine is not None
        and (
            engine.state.config.projection is not None
            or engine.state.arms.d in service.ports.projections
        )
        and not shard.knows(event.router_id, event.request_id)
    )


def decide(request: Prepared, service: Service, answers: Answers) -> None:
    """Answer one request, let it wait for its router, or refuse it; what waited for its decision is
    applied at once."""
    message, event = request.message, request.event
    shard = service.shard(message.partition)
    engine = shard.engine(event.router_id)
    known = engine.records.get(event.request_id) if engine is not None else None
    contained = request.parked is None and shard.watermarks.is_applied(
        message.topic, message.offset
    )
    if known is not None and not (contained and known.offset > message.offset):
        # Read again after a crash, or after its wait, it is still the first answer.
        repeat = known.offset != message.offset
        value = _value(event, known, engine, repeat=repeat)
        answers.routes.append((event.router_id, value, trace_of_message(message)))
        _answered(request, service, answers)
        return
    if contained:  # it waits, or was refused; a later request may have been decided under its id
        return
    if isinstance(request.x, MalformedEvent):
        service.refuse_later(_parked(request, service, request.x), request.x, answers)
        return
    if engine is None and event.router_id not in shard.unreadable:
        _wait_for_router(request, service, answers)
        return
    if request.parked is None and _needs_encoding(request, service):
        # Its router was declared while the batch was prepared: encoding is nothing that the single
        # writer waits for.
        _wait_for_router(request, service, answers)
        answers.declared_meanwhile.append((message.partition, event.router_id))
        return
    try:
        shard.require_readable(event.router_id)
        assert engine is not None
        asked = Asked(
            event.request_id,
            _context(request, engine, service),
            offset=message.offset,
            allowed_models=event.allowed_models,
            max_price_per_1k=event.max_price_per_1k,
            input_tokens=input_tokens(event.input_tokens, event.prompt),
            contained=service.positions(message.partition),
            needs=None if event.needs is None else Needs(**structs.asdict(event.needs)),
        )
        changes = shard.apply(event.router_id, asked, now=service.ports.clock())
        if changes.refusal is not None:
            raise changes.refusal
    except (RouterStateError, Refusal) as error:
        service.refuse_later(_parked(request, service, error), error, answers)
        return
    record = changes.decision
    assert record is not None
    service.ports.count(f"decided_{record.reason}")
    value = _value(event, record, engine, repeat=False)
    answers.routes.append((event.router_id, value, trace_of_message(message)))
    _answered(request, service, answers)
    apply_waiting(shard, event.router_id, event.request_id, service, answers)


def _value(event: Request, record: RequestRecord, engine: Engine | None, *, repeat: bool) -> bytes:
    since = None if engine is None else engine.state.since.led_to(record.seq)
    # An answer is given again after a crash: readers must not take it for one without steps.
    if since is None and not repeat:
        since = UNKNOWN
    return route_value(event.router_id, event.request_id, record, repeat=repeat, since=since)


def _answered(request: Prepared, service: Service, answers: Answers) -> None:
    if request.parked is not None:
        service.shard(request.parked.partition).parking.answer(request.parked)
        answers.answered_later.append(request.parked)


def _is_too_large(event: Request, service: Service) -> bool:
    return (
        event.prompt is not None and len(event.prompt.encode()) > service.ports.limits.prompt_bytes
    )


def _context(request: Prepared, engine: Engine, service: Service) -> Vector:
    if engine.state.in_flight >= service.ports.limits.in_flight_per_router:
        raise TooManyInFlight(
            f"{engine.state.in_flight} requests of this router await their bill "
            "(PB_IN_FLIGHT_PER_ROUTER)"
        )
    if isinstance(request.x, EncoderUnavailable | MalformedEvent):
        raise request.x
    if request.x is not None:
        return request.x
    if _is_too_large(request.event, service):
        raise PromptTooLarge(
            f"the prompt has more than {service.ports.limits.prompt_bytes} bytes (PB_PROMPT_BYTES)"
        )
    if service.ports.encode is None:
        raise EncoderUnavailable(
            "this worker runs without an encoder: send a context, or give it one "
            "(PB_ENCODER_BACKEND)"
        )
    raise WrongDimensions(
        f"prompts become {' or '.join(map(str, service.ports.projections))} dimensions on this "
        f"worker; the router has {engine.state.arms.d}"
    )


def _wait_for_router(request: Prepared, service: Service, answers: Answers) -> None:
    error = UnknownRouter("no router of this id was declared")
    parked = _parked(request, service, error)
    if len(service.shard(parked.partition).parking) < service.ports.limits.parked_events:
        service.shard(parked.partition).park(parked)
    else:
        service.refuse_later(parked, error, answers)


def _parked(request: Prepared, service: Service, error: Exception) -> Parked:
    if request.parked is not None:
        return request.parked
    due = service.ports.clock() + service.ports.limits.unknown_router_wait
    return Parked.of(
        request.message, error, router_id=request.event.router_id, due=due, private=True
    )


async def route_waiting(router_ids: Iterable[tuple[int, str]], service: Service) -> None:
    """Answer the requests that waited for routers which are declared now."""

    async def step(portion: list[Parked]) -> None:
        batch = take_in(
            portion,
            Request,
            partition_of=service.ports.partition_of,
            max_bytes=service.batch_bytes,
        )
        prepared = await prepare(
            [Prepared(t.message, t.event, None, parked=t.message) for t in batch.taken], service
        )
        answers = Answers()
        async with service.batch():
            for request in prepared:
                # Between the look and the lock another agent may have answered or refused it.
                if service.shard(request.message.partition).parking.is_waiting(request.message):
                    with on_behalf_of(request.message):
                        decide(request, service, answers)
        await service.answer(answers)

    async with service.encoding_waiting:
        waiting = [
            parked
            for number, router_id in router_ids
            for parked in service.shard(number).parking.waiting_for(router_id, None)
        ]
        for portion in portions(waiting, lambda parked: 1, limit=service.ports.limits.batch_size):
            await try_alone(portion, step, service.give_up)
