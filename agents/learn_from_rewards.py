"""Learn from rewards, whenever they come."""

from __future__ import annotations

from typing import Any

from agents.feedback import book
from agents.intake import Taken, take_in
from agents.service import Answers, Service
from router_state.config import Vector
from schemas.rewards import RewardObserved


async def learn_from_rewards(stream: Any, service: Service) -> None:
    """Join each reward to the context of its request and move the arm that answered it.

    Reads `pb.rewards` (key router_id). Writes the router's state and the request's record to `router_states`. The same reward
    again, or one of lower rank, changes nothing; a higher rank or revision moves the response by the difference. Dead letters:
    everything of `RewardObserved`, `from_the_future`, `context_lost`, and `orphan_reward` after a wait.
    """

    async def step(messages: list[Any]) -> None:
        batch = take_in(messages, RewardObserved, partition_of=service.partition_of, max_bytes=service.room)
        await service.make_room({taken.message.partition for taken in batch.taken})
        contexts = await _contexts(batch.taken, service)
        answers = Answers(strays=batch.strays, refused=batch.refused)
        async with service.batch():
            for taken, x in zip(batch.taken, contexts, strict=True):
                book(taken, service, answers, x=x)
            service.reached(messages)
        await service.answer(answers)

    await service.run(stream, step)


async def _contexts(taken: list[Taken[RewardObserved]], service: Service) -> list[Vector | None]:
    if service.contexts is None:
        return [None] * len(taken)
    return await service.contexts.get([(t.event.router_id, t.event.request_id) for t in taken])
