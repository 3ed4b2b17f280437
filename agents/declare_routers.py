"""Put declarations of routers in force."""

from __future__ import annotations

from typing import Any

from agents.intake import headers_of
from agents.refusals import StaleConfig, TooManyModels, TooManyRouters, WrongPrior
from agents.route_requests import route_waiting
from agents.service import Answers, Service
from agents.wire import config_of
from router_state.config import Prior
from router_state.errors import InvalidConfig
from schemas.event import MalformedEvent
from schemas.headers import based_on
from schemas.priors import ReferencedPrior
from schemas.routers import RouterDeclared, decode_router

Declaration = tuple[Any, str, RouterDeclared | None, dict[str, Prior], int | None]


async def declare_routers(stream: Any, service: Service) -> None:
    """Compare each declaration with the router's state: models join, retire or change price, the budget changes.

    Reads `pb.routers` (key router_id; null: the router is gone). Writes the router's state to `router_states`; `pb.lambda`
    shows the offset in force. A declaration that is read again changes nothing. Dead letters: everything of `RouterDeclared`,
    `stale_config`, `too_many_models`, `too_many_routers`, `wrong_prior`, `invalid_config`.
    """

    async def step(messages: list[Any]) -> None:
        answers = Answers()
        declarations = [d for message in messages if (d := await _read(message, service, answers)) is not None]
        declared: list[tuple[int, str]] = []
        async with service.batch():
            for declaration in declarations:
                if _apply(declaration, service, answers):
                    declared.append((declaration[0].partition, declaration[1]))
            service.reached(messages)
        await service.answer(answers)
        await route_waiting(declared, service)

    await service.run(stream, step)


async def _read(message: Any, service: Service, answers: Answers) -> Declaration | None:
    """Decode one declaration and read the priors that it refers to; refuse it, or send it on, where that can't be."""
    try:
        router_id, declared = decode_router(key=message.key, value=message.value)
        condition = based_on(headers_of(message))
        if declared is not None and len(declared.models) > service.limits.models_per_router:
            raise TooManyModels(f"{len(declared.models)} models; PB_MODELS_PER_ROUTER allows {service.limits.models_per_router}")
        priors = await _priors(declared, service)
    except (MalformedEvent, TooManyModels, WrongPrior) as error:
        answers.refused.append((message, error))
        return None
    return message, router_id, declared, priors, condition


async def _priors(declared: RouterDeclared | None, service: Service) -> dict[str, Prior]:
    models = {} if declared is None else declared.models
    return {
        name: await service.read_prior(model.prior) for name, model in models.items() if isinstance(model.prior, ReferencedPrior)
    }


def _apply(declaration: Declaration, service: Service, answers: Answers) -> bool:
    """Put one declaration in force and tell whether it was."""
    message, router_id, declared, priors, condition = declaration
    shard = service.shard(message.partition)
    if shard.contains(message.topic, message.offset):
        return False
    engine = shard.engine(router_id)
    in_force = None if engine is None else engine.state.config.offset
    try:
        if condition is not None and condition != in_force:
            raise StaleConfig(f"based on offset {condition}; in force is {in_force}")
        if declared is None:
            shard.drop(router_id)
            return False
        config = config_of(declared, offset=message.offset, references=priors)
        if engine is not None:
            engine.configure(config, now=service.clock())
            shard.touch(router_id)
        elif service.routers >= service.limits.routers_per_worker:
            raise TooManyRouters(f"this worker has {service.routers}; PB_ROUTERS_PER_WORKER is the limit")
        else:
            shard.start(router_id, config)
    except (InvalidConfig, StaleConfig, TooManyRouters) as error:
        answers.refused.append((message, error))
        return False
    return True
