"""Learn from rewards, whenever they come."""

from __future__ import annotations

from agents.feedback import book_all
from agents.ports import Source
from agents.service import Service
from schemas.quick import Reward


async def learn_from_rewards(source: Source, service: Service) -> None:
    """Join each reward to the context of its request and move the arm that answered it.

    Reads `pb.rewards` (key router_id). Writes the router's state and the request's record to
    `router_states`. The same reward again, or one of lower rank, changes nothing; a higher rank or
    revision moves the response by the difference. Dead letters: everything of `RewardObserved`,
    `from_the_future`, `context_lost`, and `orphan_reward` after a wait.
    """
    await book_all(source, Reward, service)
