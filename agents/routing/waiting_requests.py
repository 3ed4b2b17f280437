"""Answer the requests that waited for their router."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from agents.group import chunks
from agents.lane.poison import try_alone
from agents.partition.partition import Partition
from agents.routing.request_contexts import Prepared, prepare
from agents.routing.route_requests import decide, given
from agents.table.parking import Parked
from agents.taking.intake import take_in
from schemas.quick import Request


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
                await try_alone(portion, partial(_answer, partition), partition.refuse_failed)


def _waiting(router_ids: list[str], partition: Partition, *, after: int) -> list[Parked]:
    """Return the requests behind an offset that wait for these routers."""
    return [
        parked
        for router_id in router_ids
        for parked in partition.parking.waiting_for(router_id, None)
        if parked.offset > after
    ]


async def _answer(partition: Partition, portion: list[Parked]) -> None:
    """Decide a portion of waiting requests; refuse those that can't be read any more."""
    batch = take_in(
        portion,
        Request,
        partition_of=partition.ports.log.partition_of,
        max_bytes=partition.group_bytes,
        homes=partition.routers,
    )
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
