"""Put declarations of routers in force."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.declaring.configuration import config_of, projection_ref
from agents.declaring.in_force import is_repeated, keep, overtake, repeat
from agents.group import Answers
from agents.lane.poison import on_behalf_of
from agents.lending.lend_money import leaving
from agents.parked import Parked
from agents.partition.chunks import portions
from agents.partition.partitions import Service
from agents.publishing.publish import publish
from agents.refusal_kinds import (
    Refusal,
    StaleConfig,
    TooManyModels,
    TooManyRouters,
    WrongPrior,
    WrongProjection,
)
from agents.routing.waiting_requests import route_waiting
from agents.table.unpacking import arm_bytes
from agents.taking.intake import WrongPartition, check_size, is_at_home
from ground.messages import Record, headers_of
from router_state.config import Prior, RouterConfig
from router_state.errors import RouterStateError
from router_state.events import Redeclared
from schemas.event import MalformedEvent
from schemas.headers import based_on
from schemas.priors import ReferencedPrior
from schemas.routers import RouterDeclared, decode_router


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration as read. `declared` None: the router is removed; `refusal`: a fault that is
    already known."""

    message: Record
    router_id: str
    declared: RouterDeclared | None
    condition: int | None
    priors: dict[str, Prior]
    refusal: Refusal | None = None

    @property
    def weight(self) -> int:
        """Bound the bytes of the state that it starts."""
        if self.declared is None:
            return 0
        return len(self.message.value or b"") + len(self.declared.models) * arm_bytes(
            self.declared.dimensions
        )


async def declare_routers(service: Service, messages: list[Record]) -> None:
    """Compare each declaration with the router's state: models join, retire or change price, the
    budget changes.

    Reads `pb.routers` (key router_id; null: the router is gone). Writes the router's state to
    `router_states`; `pb.lambda` shows the offset in force, and a tombstone once the router is gone.
    A declaration that is read again changes nothing; a refused one is followed by the one in force,
    with the header `pb.repeated`. Dead letters: everything of `RouterDeclared`, `wrong_partition`,
    `stale_config`, `too_many_models`, `too_many_routers`, `wrong_prior`, `wrong_projection`,
    `corrupt_snapshot`, `invalid_config`.
    """

    number = messages[0].partition
    read = Answers()  # refused or forwarded without a look at the state
    declarations = [
        d for message in messages if (d := await _read(message, service, read)) is not None
    ]
    declared: list[tuple[int, str]] = []
    overtaken: list[tuple[int, str]] = []
    await service.clear(number)
    # Small: all partitions declare at a time, and a produce request has each batch three times.
    limit = service.batch_bytes // 8
    for portion in [
        *portions(
            declarations,
            # A removal is a portion of its own: the router's records are cleared before the next
            # one.
            lambda d: limit + 1 if d.declared is None else d.weight,
            limit=limit,
        )
    ] or [[]]:
        async with service.lanes[number].batch() as answers:
            declared += [
                (number, d.router_id) for d in portion if _put_in_force(d, service, answers)
            ]
            # Refused and stray ones count with the last portion: a crash before it reads them
            # again.
            is_last = not declarations or portion[-1] is declarations[-1]
            if is_last:
                answers.strays += read.strays
                answers.refused += read.refused
            overtaken += _overtaken(answers, service)
            service.lanes[number].contain(messages if is_last else [d.message for d in portion])
        # A router that is declared again finds no records of the one before.
        await service.clear(number)
    if any(d.declared is None for d in declarations):
        # Sent before the event is done, as the state does not tell the next worker of it.
        await publish(service)
    await repeat(overtaken, service)
    await route_waiting(declared, service)


def _overtaken(answers: Answers, service: Service) -> list[tuple[int, str]]:
    """Note the declarations in force that a refused record follows; return the partition and router
    of each."""
    last: dict[tuple[int, str], int] = {}
    for source, _ in (*answers.refused, *answers.refused_later):
        at = source.partition, (source.key or b"").decode(errors="replace")
        last[at] = max(source.offset, last.get(at, -1))
    found = [
        (number, router_id)
        for number, router_id in sorted(last)
        if router_id in service.shard(number)
    ]
    return [at for at in found if overtake(service.shard(at[0]), at[1], offset=last[at])]


async def _read(message: Record, service: Service, answers: Answers) -> Declaration | None:
    """Decode one declaration and read its references; refuse it or forward it if it can't be
    applied here."""
    try:
        router_id, declared = decode_router(key=message.key, value=message.value)
        condition = based_on(headers_of(message))
        check_size(message, service.batch_bytes)
        if not is_at_home(message, router_id, partition_of=service.ports.partition_of):
            answers.strays.append((message, router_id))
            return None
    except (MalformedEvent, WrongPartition) as error:
        answers.refused.append((message, error))
        return None
    try:
        priors = await _priors(declared, service)
        if declared is not None and (projection := projection_ref(declared)) is not None:
            await service.ports.check_projection(projection, declared.dimensions)
    except (WrongPrior, WrongProjection) as error:
        return Declaration(message, router_id, declared, condition, {}, error)
    return Declaration(message, router_id, declared, condition, priors)


async def _priors(declared: RouterDeclared | None, service: Service) -> dict[str, Prior]:
    models = {} if declared is None else declared.models
    return {
        name: await service.ports.read_prior(model.prior)
        for name, model in models.items()
        if isinstance(model.prior, ReferencedPrior)
    }


def _put_in_force(declaration: Declaration, service: Service, answers: Answers) -> bool:
    """Put one declaration in force and tell whether it was."""
    with on_behalf_of(declaration.message):
        return _apply(declaration, service, answers)


def _apply(declaration: Declaration, service: Service, answers: Answers) -> bool:
    message, router_id, declared = declaration.message, declaration.router_id, declaration.declared
    shard = service.shard(message.partition)
    if shard.watermarks.is_applied(message.topic, message.offset):
        # A crash may have come between the commit and its tombstone on `pb.lambda`.
        if declared is None and router_id not in shard:
            service.bulletin.changed((shard.number, router_id))
        return False
    engine = shard.engine(router_id)
    try:
        if declared is not None:  # an unreadable router can still be removed
            shard.require_readable(router_id)
        if router_id not in shard.unreadable and not is_repeated(
            message, headers_of(message), shard, router_id
        ):
            _check(declaration, -1 if engine is None else engine.state.config.offset, service)
        if declared is None:
            answers.leases += leaving(shard, router_id, None, now=service.ports.clock())
            shard.drop(router_id)
            shard.lending.joined(router_id, None)
            service.bulletin.changed((shard.number, router_id))
            return False
        config = replace(
            config_of(declared, offset=message.offset, references=declaration.priors),
            applied=service.shard(message.partition).watermarks.both(*service.feedback_topics),
        )
        if engine is not None:
            _require_same_coordinates(engine.state.config, config, service)
            left = leaving(shard, router_id, declared.pool, now=service.ports.clock())
            changes = shard.apply(router_id, Redeclared(config), now=service.ports.clock())
            if changes.refusal is not None:
                raise changes.refusal
            answers.leases += left
        elif service.routers >= service.ports.limits.routers_per_worker:
            raise TooManyRouters(
                f"this worker has {service.routers}; PB_ROUTERS_PER_WORKER is the limit"
            )
        else:
            shard.start(router_id, config)
        shard.lending.joined(router_id, shard.engine(router_id))
        keep(shard, router_id, message.value or b"", offset=message.offset)
    except (RouterStateError, Refusal) as error:
        service.refuse_later(Parked.of(message, error, router_id=router_id), error, answers)
        return False
    return True


def _check(declaration: Declaration, in_force: int, service: Service) -> None:
    """Raise the Refusal that a declaration deserves; `in_force` is −1 where none is."""
    condition, declared, limits = declaration.condition, declaration.declared, service.ports.limits
    if condition is not None and condition != in_force:
        raise StaleConfig(f"based on {_named(condition)}; in force is {_named(in_force)}")
    if declared is not None and len(declared.models) > limits.models_per_router:
        raise TooManyModels(
            f"{len(declared.models)} models; PB_MODELS_PER_ROUTER allows {limits.models_per_router}"
        )
    if declaration.weight > limits.changelog_batch_bytes:
        raise TooManyModels(
            f"{len(declared.models) if declared else 0} models of this dimension need "
            f"{declaration.weight} bytes; "
            f"PB_CHANGELOG_BATCH_BYTES allows {limits.changelog_batch_bytes}"
        )
    if declaration.refusal is not None:
        raise declaration.refusal


def _require_same_coordinates(before: RouterConfig, after: RouterConfig, service: Service) -> None:
    """Raise WrongProjection if contexts would change their meaning for what was learned."""
    own = service.ports.projections.get(before.dimensions, "")
    was, now = (own if one.projection is None else one.projection.sha256 for one in (before, after))
    if was != now:
        raise WrongProjection(
            "a router keeps the projection that it was created with: declare another router_id"
        )


def _named(offset: int) -> str:
    return "none" if offset < 0 else f"offset {offset}"
