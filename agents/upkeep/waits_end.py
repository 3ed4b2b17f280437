"""Refuse events that have waited too long, and finish work that a crash or a roll-back has
interrupted.
"""

from __future__ import annotations

from functools import partial

from agents.declaring.in_force import repeat
from agents.group import chunks
from agents.partition.partition import Partition
from agents.partition.poison import try_alone
from agents.requests.book_feedback import refuse_orphan
from agents.requests.route_requests import is_being_answered, route_waiting
from agents.table.parking import Parked


async def resume(partition: Partition) -> None:
    """Finish interrupted work, once after each recovery or roll-back of a partition. Deliver
    refusals, answer requests whose router is known, delete records of removed routers, and repeat
    overtaken declarations in force. Raises Gone.
    """
    if not partition.interrupted:
        return
    # The mark is cleared first, as a roll-back below sets it again.
    partition.interrupted = False
    undelivered, partition.undelivered = partition.undelivered, []
    if undelivered:
        async with partition.lane.group() as answers:
            answers.refused_later += [(parked, parked.refusal) for parked in undelivered]
    router_ids = list(partition.routers)
    await route_waiting(router_ids, partition)
    await partition.clear_removed()
    await repeat(router_ids, partition)


async def end_waits(partition: Partition) -> None:
    """Refuse the parked events whose time is up. Raises Gone."""
    for portion in chunks(
        _hopeless(partition), lambda parked: len(parked.value or b""), limit=partition.group_bytes
    ):
        await try_alone(portion, partial(_end, partition), partition.refuse_failed)


async def _end(partition: Partition, portion: list[Parked]) -> None:
    async with partition.lane.group() as answers:
        for parked in portion:
            # Checked again: the event may have been answered meanwhile, or its router declared.
            if partition.parking.is_waiting(parked) and not is_being_answered(parked, partition):
                answers.at = parked
                if parked.request_id is None:  # a request, whose router was not declared in time
                    partition.refuse_later(parked, parked.refusal, answers)
                else:
                    refuse_orphan(parked, partition, answers)


def _hopeless(partition: Partition) -> list[Parked]:
    """Return the events whose time is up.

    Bills and rewards go on waiting while requests that were sent before them may still be unread:
    a worker that comes back reads its backlogs side by side.
    """
    due = partition.parking.due(partition.clock())
    if not due:
        return due
    taken_before = partition.requests_seen_at if partition.lags() else float("inf")
    wait = partition.ports.limits.orphan_wait
    return [
        parked
        for parked in due
        if (
            parked.due - wait <= taken_before
            if parked.request_id is not None
            else not is_being_answered(parked, partition)
        )
    ]
