"""Give requests their contexts, which were sent with them or are encoded from their prompts."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from agents.partition.partition import Partition
from agents.ports import Prompt
from agents.refusal_kinds import (
    EncoderUnavailable,
    PromptTooLarge,
    WrongDimensions,
)
from agents.table.parking import Parked
from ground.messages import Message
from router_state.config import Vector
from router_state.engine import Engine
from schemas.event import MalformedEvent
from schemas.prompt_length import is_wordless
from schemas.quick import Request


class Prepared(Struct, frozen=True):
    """A request with its context; None if the request needs none, or the error why it has none."""

    message: Message
    event: Request
    x: Vector | EncoderUnavailable | MalformedEvent | None
    parked: Parked | None = None


async def prepare(requests: list[Prepared], partition: Partition) -> list[Prepared]:
    """Return every undecided request with its context; prompts are encoded together, off the event
    loop.
    """
    prompts = [i for i, request in enumerate(requests) if needs_encoding(request, partition)]
    encoded: dict[int, Vector | EncoderUnavailable] = {}
    if prompts and (encoder := partition.ports.encoder) is not None:
        contexts = await encoder.encode([_prompt(requests[i], partition) for i in prompts])
        encoded = dict(zip(prompts, contexts, strict=True))
    return [
        Prepared(request.message, request.event, encoded[i], request.parked)
        if i in encoded
        else request
        for i, request in enumerate(requests)
    ]


def _prompt(request: Prepared, partition: Partition) -> Prompt:
    engine = partition.routers.engine(request.event.router_id)
    assert engine is not None
    named = engine.state.config.projection
    return request.event.prompt or "", engine.state.arms.d if named is None else named


def needs_encoding(request: Prepared, partition: Partition) -> bool:
    """Tell whether a request's prompt must be encoded: the request is not decided and carries no
    context.
    """
    event, encoder = request.event, partition.ports.encoder
    if (
        encoder is None
        or request.x is not None
        or event.router_id not in partition.routers
        or _is_too_large(event, partition)
        or is_wordless(event.prompt, event.needs)
    ):
        return False
    engine = partition.routers.engine(event.router_id)
    return (
        engine is not None
        and (
            engine.state.config.projection is not None or engine.state.arms.d in encoder.projections
        )
        and not partition.routers.knows(event.router_id, event.request_id)
    )


def _is_too_large(event: Request, partition: Partition) -> bool:
    limit = partition.ports.limits.prompt_bytes
    return event.prompt is not None and len(event.prompt.encode()) > limit


def context_of(request: Prepared, engine: Engine, partition: Partition) -> Vector:
    """Return the mean context of a request without text. For any other request without a context,
    raise its refusal.
    """
    if is_wordless(request.event.prompt, request.event.needs):
        return mean_context(engine.state.arms.d)
    if isinstance(request.x, EncoderUnavailable):
        raise request.x
    limit, encoder = partition.ports.limits.prompt_bytes, partition.ports.encoder
    if _is_too_large(request.event, partition):
        raise PromptTooLarge(f"the prompt has more than {limit} bytes (PB_PROMPT_BYTES)")
    if encoder is None:
        raise EncoderUnavailable(
            "this worker runs without an encoder: send a context, or give it one "
            "(PB_ENCODER_BACKEND)"
        )
    raise WrongDimensions(
        f"prompts become {' or '.join(map(str, encoder.projections))} dimensions on this worker; "
        f"the router has {engine.state.arms.d}"
    )


def mean_context(d: int) -> Vector:
    """Return the context that stands for every prompt, shape (d,): zeros, and the bias 1.0.

    The mean of features is 0 if they are centred principal components, over the prompts that they
    were fitted to. For other features this context is the origin: only the bias of the request is
    known.
    """
    x = np.zeros(d)
    x[-1] = 1.0
    return x
