"""Answer the requests that waited for their router."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from agents.intake import take_in
from agents.parked import Parked
from agents.poison import try_alone
from agents.portions import portions
from agents.request_contexts import Prepared, prepare
from agents.route_requests import decide, given
from agents.service import Service
from schemas.quick import Request


async def route_waiting(routers: Iterable[tuple[int, str]], service: Service) -> None:
    """Answer the requests that waited for routers which are declared now."""

    async def step(portion: list[Parked]) -> None:
        batch = take_in(
            portion,
            Request,
            partition_of=service.ports.partition_of,
            max_bytes=service.batch_bytes,
        )
        prepared = await prepare(
            [Prepared(t.message, t.event, given(t.event), t.message) for t in batch.taken], service
        )
        lane = service.lanes.get(portion[0].partition)
        if lane is None:  # it was lost meanwhile
            return
        async with lane.batch() as answers:
            for request in prepared:
                # Between the look and the turn it may have been answered or refused.
                if lane.shard.parking.is_waiting(request.message):
                    answers.at = request.message
                    decide(request, service, answers)

    async with service.encoding_waiting:
        for number, router_ids in groupby(sorted(set(routers)), lambda at: at[0]):
            waiting = [
                parked
                for _, router_id in router_ids
                if number in service.shards
                for parked in service.shard(number).parking.waiting_for(router_id, None)
            ]
            for portion in portions(waiting, lambda _: 1, limit=service.ports.limits.batch_size):
                await try_alone(portion, step, service.give_up)
