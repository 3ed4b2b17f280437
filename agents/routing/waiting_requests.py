"""Answer the requests that waited for their router."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby

from agents.lane.poison import try_alone
from agents.parked import Parked
from agents.partition.chunks import portions
from agents.partition.partitions import Service
from agents.routing.request_contexts import Prepared, prepare
from agents.routing.route_requests import decide, given
from agents.taking.intake import take_in
from schemas.quick import Request


async def route_waiting(routers: Iterable[tuple[int, str]], service: Service) -> None:
    """Answer the requests that waited for routers which are declared now, and those that have come
    behind them meanwhile: a router's requests are decided in the order of their topic."""
    async with service.encoding_waiting:
        for number, router_ids in groupby(sorted(set(routers)), lambda at: at[0]):
            names, last = [router_id for _, router_id in router_ids], -1
            while waiting := _waiting(number, names, service, after=last):
                last = max(parked.offset for parked in waiting)
                for portion in portions(
                    waiting, lambda _: 1, limit=service.ports.limits.batch_size
                ):
                    await try_alone(portion, partial(_answer, service), service.give_up)


def _waiting(number: int, router_ids: list[str], service: Service, *, after: int) -> list[Parked]:
    """Return what waits for routers of a partition behind an offset; none where it was lost."""
    shard = service.shards.get(number)
    return [
        parked
        for router_id in (() if shard is None else router_ids)
        for parked in service.shard(number).parking.waiting_for(router_id, None)
        if parked.offset > after
    ]


async def _answer(service: Service, portion: list[Parked]) -> None:
    """Decide some that have waited, or refuse what can't be read any more."""
    number = portion[0].partition
    batch = take_in(
        portion,
        Request,
        partition_of=service.ports.partition_of,
        max_bytes=service.batch_bytes,
        homes=service.shards.get(number, ()),
    )
    prepared = await prepare(
        [Prepared(t.message, t.event, given(t.event), t.message) for t in batch.taken], service
    )
    lane = service.lanes.get(number)
    if lane is None:  # it was lost meanwhile
        return
    parking = lane.shard.parking
    async with lane.batch() as answers:
        for parked, error in batch.refused:
            if parking.is_waiting(parked):
                service.refuse_later(parked, error, answers)
        for request in prepared:
            # Between the look and the turn it may have been answered or refused.
            if parking.is_waiting(request.message):
                answers.at = request.message
                decide(request, service, answers)
