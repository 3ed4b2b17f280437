"""Book what requests really cost, and so move λ_t."""

from __future__ import annotations

from typing import Any

from agents.feedback import book
from agents.intake import take_in
from agents.service import Answers, Service
from schemas.costs import CostReported


async def pace_spend(stream: Any, service: Service) -> None:
    """Settle the commitment of each request with its bill.

    Reads `pb.costs` (key router_id). Writes the router's state and the request's record to `router_states`; `pb.lambda` follows.
    The same or a lower revision again changes nothing, a higher one books the difference. Dead letters: everything of
    `CostReported`, `cost_out_of_range`, and `orphan_cost` after a wait, with the money in `unmatched_cost_usd`.
    """

    async def step(messages: list[Any]) -> None:
        batch = take_in(messages, CostReported, partition_of=service.partition_of, max_bytes=service.room)
        await service.make_room({taken.message.partition for taken in batch.taken})
        answers = Answers(strays=batch.strays, refused=batch.refused)
        async with service.batch():
            for taken in batch.taken:
                book(taken, service, answers)
            service.reached(messages)
        await service.answer(answers)

    await service.run(stream, step)
