"""Keep a player's requests that wait for a decision, and its bills and rewards that are due."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from studies.simulate.cases import Case
from studies.simulate.simulation import Outcomes
from studies.simulate.times import UNTOLD, Seconds
from studies.simulate.world import World


class Due(NamedTuple):
    """A bill or a reward, to be sent once a given number of requests is decided; `topic` is `costs`
    or `rewards`.
    """

    decided: int
    order: int
    topic: str
    request_id: str
    value: float
    times: Seconds = UNTOLD


class Sent:
    """Counts of events that are already in the target's topics, by id. The player subtracts one
    whenever it comes to an id.
    """

    def __init__(self) -> None:
        self._times: dict[str, dict[str, int]] = {"requests": {}, "costs": {}, "rewards": {}}

    def add(self, topic: str, request_id: str) -> None:
        """Note an event that was read back."""
        times = self._times[topic]
        times[request_id] = times.get(request_id, 0) + 1

    def has_request(self, request_id: str) -> bool:
        """Tell whether a request is in the target's topics already and the player has yet to come
        to it.
        """
        return request_id in self._times["requests"]

    def take(self, topic: str, request_id: str) -> bool:
        """Tell whether an event is in the target's topics already, and count it as passed."""
        times = self._times[topic]
        left = times.pop(request_id, 0)
        if left > 1:
            times[request_id] = left - 1
        return left > 0


class Ledger:
    """The books of one player.

    Decisions of requests that an earlier player sent may be read before this one comes to them:
    they are kept until then.

    Args:
        sent: what an earlier player has sent.
    """

    def __init__(self, world: World, outcomes: Outcomes, sent: Sent) -> None:
        self._world = world
        self._outcomes = outcomes
        self._sent = sent
        self._undecided: dict[str, tuple[Case, int]] = {}
        self._early: dict[str, str | None] = {}
        self._due: list[Due] = []
        self._order = 0
        self.decided = 0
        self.refused = 0

    @property
    def undecided(self) -> int:
        """Return how many requests wait for their decision."""
        return len(self._undecided)

    def submit(self, request_id: str, case: Case, copy: int) -> bool:
        """Register a request; return whether it still has to be sent."""
        self._undecided[request_id] = case, copy
        if not self._sent.take("requests", request_id):
            return True
        # A player before this one sent it, and its answer was read before this one came to it.
        if request_id in self._early:
            self.answer(request_id, self._early.pop(request_id))
        return False

    def answer(self, request_id: str, model: str | None) -> None:
        """Note the decision of a request, None if the request was refused; a second answer to a
        request changes nothing.
        """
        waiting = self._undecided.pop(request_id, None)
        if waiting is None:
            # Else it was answered before: nothing waits for it any more.
            if self._sent.has_request(request_id):
                self._early[request_id] = model
            return
        self.decided += 1
        if model is None:
            self.refused += 1
            return
        case, copy = waiting
        reward, cost, _ = self._outcomes.of(case, model)
        reward_here, cost_here = self._world.outcome(case.index, model, reward or 0.0, cost or 0.0)
        if cost is not None:
            times = self._world.times(case.index, model, self._outcomes.times.of(case, model))
            self._later("costs", case, copy, request_id, cost_here, case.cost_lag, times)
        if reward is not None:
            self._later("rewards", case, copy, request_id, reward_here, case.reward_lag)

    def due(self, *, everything: bool = False) -> Iterator[Due]:
        """Remove and yield the bills and rewards that are due now, or all of them. Those that an
        earlier player has sent are left out.
        """
        # Delays count decisions, not time: a bill's effect depends on the decisions before it.
        while self._due and (everything or self._due[0].decided <= self.decided):
            found = heapq.heappop(self._due)
            if not self._sent.take(found.topic, found.request_id):
                yield found

    def _later(
        self,
        topic: str,
        case: Case,
        copy: int,
        request_id: str,
        value: float,
        lag: int,
        times: Seconds = UNTOLD,
    ) -> None:
        for late in self._world.lags(case.index, copy, topic, lag):
            # A number that never repeats, so that the heap compares no values, and equal times stay
            # in order.
            self._order += 1
            heapq.heappush(
                self._due, Due(self.decided + late, self._order, topic, request_id, value, times)
            )
