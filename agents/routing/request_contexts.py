"""Give requests their contexts: as sent, or encoded from the prompt."""

from __future__ import annotations

from msgspec import Struct

from agents.context_store import Prompt
from agents.parked import Parked
from agents.partition.partitions import Service
from agents.refusal_kinds import (
    EncoderUnavailable,
    PromptTooLarge,
    WrongDimensions,
)
from agents.routing.mean_context import mean_context
from ground.messages import Message
from router_state.config import Vector
from router_state.engine import Engine
from schemas.event import MalformedEvent
from schemas.prompt_length import is_wordless
from schemas.quick import Request


class Prepared(Struct, frozen=True):
    """A request with its context; None if it needs none, or the error why it has none."""

    message: Message
    event: Request
    x: Vector | EncoderUnavailable | MalformedEvent | None
    parked: Parked | None = None


async def prepare(requests: list[Prepared], service: Service) -> list[Prepared]:
    """Give every undecided request its context; prompts are encoded together, off the event
    loop."""
    prompts = [i for i, request in enumerate(requests) if needs_encoding(request, service)]
    encoded: dict[int, Vector | EncoderUnavailable] = {}
    if prompts and service.ports.encode is not None:
        contexts = await service.ports.encode([_prompt(requests[i], service) for i in prompts])
        encoded = dict(zip(prompts, contexts, strict=True))
    return [
        Prepared(request.message, request.event, encoded[i], request.parked)
        if i in encoded
        else request
        for i, request in enumerate(requests)
    ]


def _prompt(request: Prepared, service: Service) -> Prompt:
    engine = service.shard(request.message.partition).engine(request.event.router_id)
    assert engine is not None
    named = engine.state.config.projection
    return request.event.prompt or "", engine.state.arms.d if named is None else named


def needs_encoding(request: Prepared, service: Service) -> bool:
    """Tell whether a request's prompt is to be encoded: nobody has decided on it yet."""
    event, shard = request.event, service.shard(request.message.partition)
    if (
        service.ports.encode is None
        or request.x is not None
        or event.router_id not in shard
        or _is_too_large(event, service)
        or is_wordless(event.prompt, event.needs)
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


def _is_too_large(event: Request, service: Service) -> bool:
    return (
        event.prompt is not None and len(event.prompt.encode()) > service.ports.limits.prompt_bytes
    )


def context_of(request: Prepared, engine: Engine, service: Service) -> Vector:
    """Return the context of a request that carries and gets none. Raises its refusal."""
    if is_wordless(request.event.prompt, request.event.needs):
        return mean_context(engine.state.arms.d)
    if isinstance(request.x, EncoderUnavailable):
        raise request.x
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
