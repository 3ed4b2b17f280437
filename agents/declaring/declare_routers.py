"""Read declarations of routers, with the priors and projections that they name, and put them in
force.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.declaring.configuration import config_of, projection_ref
from agents.declaring.in_force import is_repeated, keep, overtake, repeat
from agents.group import Answers, Note, chunks
from agents.members.exchange_grants import leaving_pool
from agents.members.exchange_priors import (
    first_priors,
    leaving_family,
    member_of,
    unwelcome,
    welcome,
)
from agents.partition.partition import Partition
from agents.partition.poison import on_behalf_of
from agents.publishing.publish import publish
from agents.refusal_kinds import (
    Refusal,
    StaleConfig,
    TooManyModels,
    TooManyRouters,
    WrongPrior,
    WrongProjection,
)
from agents.requests.route_requests import route_waiting
from agents.table.parking import Parked
from agents.table.router_records import arm_bytes
from agents.taking.intake import WrongPartition
from ground.messages import Record, headers_of, key_text
from router_state.config import Prior, RouterConfig
from router_state.errors import RouterStateError
from router_state.events import Redeclared
from schemas.event import MalformedEvent
from schemas.headers import based_on
from schemas.priors import ReferencedPrior
from schemas.routers import RouterDeclared, decode_router


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration as read. `declared` None: the router is removed; `refusal`: a fault found
    while reading.
    """

    message: Record
    router_id: str
    declared: RouterDeclared | None
    condition: int | None
    priors: dict[str, Prior]
    refusal: Refusal | None = None

    @property
    def weight(self) -> int:
        """Return an upper bound of the bytes of a state that starts from this declaration."""
        if self.declared is None:
            return 0
        return len(self.message.value or b"") + len(self.declared.models) * arm_bytes(
            self.declared.dimensions
        )


async def declare_routers(partition: Partition, messages: list[Record]) -> None:
    """Bring each router in line with its declaration: models join, retire or change price, the
    budget changes.

    Reads `pb.routers` (key router_id; null: the router is gone). Writes the router's state to
    `router_states`; `pb.lambda` shows the offset in force, and a tombstone once the router is gone.
    A declaration that is read again changes nothing. After a refused declaration the one in force
    is written again, with the header `pb.repeated`. Dead letters: all reasons of `RouterDeclared`,
    `wrong_partition`, `stale_config`, `too_many_models`, `too_many_routers`, `wrong_prior`,
    `wrong_projection`, `wrong_family`, `corrupt_snapshot`, `invalid_config`.
    """
    unread = Answers()  # refused or forwarded without a look at the state
    declarations = [
        d for message in messages if (d := await _read(message, partition, unread)) is not None
    ]
    declared: list[str] = []
    overtaken: list[str] = []
    await partition.clear_removed()
    if joining := [one for d in declarations if (one := _joining(d, partition)) is not None]:
        await welcome(partition, joining)
    for portion in _portions(declarations, limit=partition.group_bytes // 8):
        async with partition.lane.group() as answers:
            declared += [d.router_id for d in portion if _put_in_force(d, partition, answers)]
            # Refused and stray declarations count with the last portion: after a crash before it
            # they are read again.
            is_last = not declarations or portion[-1] is declarations[-1]
            if is_last:
                answers.strays += unread.strays
                answers.refused += unread.refused
                answers.notes += unwelcome(partition, joining)
            overtaken += _overtaken(answers, partition)
            partition.contain(messages if is_last else [d.message for d in portion])
        # A router that is declared again must find no records of the removed one.
        await partition.clear_removed()
    if any(d.declared is None for d in declarations):
        # The report is sent before the event is done, as the state does not tell the next worker
        # of it.
        await publish(partition.partitions)
    await repeat(overtaken, partition)
    await route_waiting(declared, partition)


async def _read(message: Record, partition: Partition, answers: Answers) -> Declaration | None:
    """Decode one declaration and read its references; refuse or forward a declaration that can't
    be applied here.
    """
    try:
        router_id, declared = decode_router(key=message.key, value=message.value)
        condition = based_on(headers_of(message))
        if not partition.admit(message, router_id, answers):
            return None
    except (MalformedEvent, WrongPartition) as error:
        answers.refused.append((message, error))
        return None
    try:
        priors = await _priors(declared, partition)
        if declared is not None and (projection := projection_ref(declared)) is not None:
            check = partition.ports.references.check_projection
            await check(projection, declared.dimensions)
    except (WrongPrior, WrongProjection) as error:
        return Declaration(message, router_id, declared, condition, {}, error)
    return Declaration(message, router_id, declared, condition, priors)


async def _priors(declared: RouterDeclared | None, partition: Partition) -> dict[str, Prior]:
    models = {} if declared is None else declared.models
    return {
        name: await partition.ports.references.read_prior(model.prior)
        for name, model in models.items()
        if isinstance(model.prior, ReferencedPrior)
    }


def _portions(declarations: list[Declaration], *, limit: int) -> list[list[Declaration]]:
    """Return declarations in portions of `limit` bytes at most; an empty one if there are none.

    Portions are small: all partitions declare at the same time, and a produce request holds each
    batch three times. A removal is a portion of its own, as the router's records are cleared before
    the next one.
    """
    found = chunks(
        declarations, lambda d: limit + 1 if d.declared is None else d.weight, limit=limit
    )
    return [*found] or [[]]


def _joining(declaration: Declaration, partition: Partition) -> tuple[str, RouterConfig] | None:
    """Return a router whose declaration names another family than before, with its
    configuration; None: it names none, or is not going to be put in force.
    """
    declared, router_id, message = declaration.declared, declaration.router_id, declaration.message
    if declared is None or declared.family is None or declaration.refusal is not None:
        return None
    if partition.watermarks.is_applied(message.topic, message.offset):
        return None
    if member_of(partition, router_id) == declared.family.name:
        return None
    try:
        config = config_of(declared, offset=message.offset, references=declaration.priors)
    except RouterStateError:  # refused as it is put in force
        return None
    return router_id, config


def _overtaken(answers: Answers, partition: Partition) -> list[str]:
    """Note which declarations in force are followed by a refused record on the topic; return their
    routers.
    """
    last: dict[str, int] = {}
    for source, _ in (*answers.refused, *answers.refused_later):
        router_id = key_text(source)
        last[router_id] = max(source.offset, last.get(router_id, -1))
    known = [router_id for router_id in sorted(last) if router_id in partition.routers]
    return [one for one in known if overtake(partition, one, offset=last[one])]


def _put_in_force(declaration: Declaration, partition: Partition, answers: Answers) -> bool:
    """Put one declaration in force; return whether it is in force."""
    message, router_id, declared = declaration.message, declaration.router_id, declaration.declared
    if partition.watermarks.is_applied(message.topic, message.offset):
        # A crash may have come between the commit and its tombstone on `pb.lambda`.
        if declared is None and router_id not in partition.routers:
            partition.news.changed(router_id)
        return False
    with on_behalf_of(message):
        try:
            if declared is not None:  # an unreadable router can still be removed
                partition.routers.require_readable(router_id)
            _check(declaration, partition)
            if declared is None:
                _remove(router_id, partition, answers)
            else:
                _declare(declaration, declared, partition, answers)
        except (RouterStateError, Refusal) as error:
            parked = Parked.of(message, error, router_id=router_id)
            partition.refuse_later(parked, error, answers)
            return False
    return declared is not None


def _remove(router_id: str, partition: Partition, answers: Answers) -> None:
    answers.notes += _leaving(partition, router_id, None)
    partition.routers.drop(router_id)
    partition.pools.joined(router_id, None)
    partition.news.changed(router_id)


def _leaving(partition: Partition, router_id: str, declared: RouterDeclared | None) -> list[Note]:
    """Return a router's last reports to the pool and the family that it leaves."""
    pool = None if declared is None else declared.pool
    family = None if declared is None or declared.family is None else declared.family.name
    return [
        *leaving_pool(partition, router_id, pool),
        *leaving_family(partition, router_id, family),
    ]


def _declare(
    declaration: Declaration, declared: RouterDeclared, partition: Partition, answers: Answers
) -> None:
    message, router_id, routers = declaration.message, declaration.router_id, partition.routers
    config = replace(
        config_of(declared, offset=message.offset, references=declaration.priors),
        applied=partition.watermarks.both(*partition.feedback_topics),
    )
    priors = first_priors(partition, router_id)
    if (engine := routers.engine(router_id)) is not None:
        _require_same_coordinates(engine.state.config, config, partition)
        left = _leaving(partition, router_id, declared)
        changes = routers.apply(router_id, Redeclared(config), now=partition.clock())
        if changes.refusal is not None:
            raise changes.refusal
        answers.notes += left
    else:
        _require_room(partition)
        routers.start(router_id, config)
    for prior in priors:
        routers.apply(router_id, prior, now=partition.clock())
    if declared.family is not None:
        # Its models may be others, which the family is to know.
        partition.families.due[router_id] = None
    partition.pools.joined(router_id, routers.engine(router_id))
    keep(partition, router_id, message.value or b"", offset=message.offset)


def _require_room(partition: Partition) -> None:
    """Raise TooManyRouters if this worker has the largest allowed number of routers."""
    found = partition.partitions.routers
    if found >= partition.ports.limits.routers_per_worker:
        raise TooManyRouters(f"this worker has {found}; PB_ROUTERS_PER_WORKER is the limit")


def _check(declaration: Declaration, partition: Partition) -> None:
    """Raise a Refusal if a declaration must be refused. A declaration that a worker has written
    again, or whose router can't be read, is not refused.
    """
    message, router_id, routers = declaration.message, declaration.router_id, partition.routers
    engine = routers.engine(router_id)
    if router_id in routers.unreadable or is_repeated(
        message, headers_of(message), partition, router_id
    ):
        return
    in_force = -1 if engine is None else engine.state.config.offset
    condition, declared = declaration.condition, declaration.declared
    limits = partition.ports.limits
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


def _require_same_coordinates(
    before: RouterConfig, after: RouterConfig, partition: Partition
) -> None:
    """Raise WrongProjection if contexts would no longer mean what the router has learned from."""
    encoder = partition.ports.encoder
    own = "" if encoder is None else encoder.projections.get(before.dimensions, "")
    was, now = (own if one.projection is None else one.projection.sha256 for one in (before, after))
    if was != now:
        raise WrongProjection(
            "a router keeps the projection that it was created with: declare another router_id"
        )


def _named(offset: int) -> str:
    return "none" if offset < 0 else f"offset {offset}"
