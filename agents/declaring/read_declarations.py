"""Read declarations of routers, with the priors and projections that they name."""

from __future__ import annotations

from dataclasses import dataclass

from agents.declaring.configuration import projection_ref
from agents.group import Answers
from agents.partition.partition import Partition
from agents.refusal_kinds import Refusal, WrongPrior, WrongProjection
from agents.table.router_records import arm_bytes
from agents.taking.intake import WrongPartition, check_size, is_at_home
from ground.messages import Record, headers_of
from router_state.config import Prior
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


async def read(message: Record, partition: Partition, answers: Answers) -> Declaration | None:
    """Decode one declaration and read its references; refuse or forward a declaration that can't
    be applied here.
    """
    try:
        router_id, declared = decode_router(key=message.key, value=message.value)
        condition = based_on(headers_of(message))
        check_size(message, partition.group_bytes)
        if not is_at_home(message, router_id, partition_of=partition.ports.log.partition_of):
            answers.strays.append((message, router_id))
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
