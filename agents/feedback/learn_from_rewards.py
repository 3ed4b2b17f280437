"""Learn from rewards, however late they come."""

from __future__ import annotations

from agents.feedback.book_feedback import Feedback
from schemas.quick import Reward


class LearnFromRewards(Feedback[Reward]):
    """Join each reward to the context of its request and move the arm that answered it.

    Reads `pb.rewards` (key router_id). Writes the router's state and the request's record to
    `router_states`. The same reward again, or one of lower rank, changes nothing; a higher rank or
    revision moves the response by the difference. One of a session goes to its requests. Dead
    letters: everything of `RewardObserved`,
    `from_the_future`, `context_lost`, and `orphan_reward` after a wait.
    """

    __slots__ = ()
    name, kind = "rewards", Reward
