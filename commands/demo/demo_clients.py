"""Simulate clients: they send requests at once, and bills and rewards some decisions later."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from commands.demo.demo_play import Scenario
from schemas import CostReported, RequestSubmitted, RewardObserved, RouteDecided, RouterDeclared

Sent = RouterDeclared | RequestSubmitted | CostReported | RewardObserved


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays of feedback in decisions, drawn uniformly from mean ± jitter·mean."""

    cost: int = 30
    reward: int = 100
    jitter: float = 0.3


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answered request: its position in the scenario, and what the chosen model cost and earned
    on it.
    """

    position: int
    decision: RouteDecided
    cost_usd: float
    reward: float


class Traffic:
    """Simulated clients, without a clock or I/O: they take decisions in and hand events out.

    A request stays in flight until its bill was sent. If no decision is awaited and no request may
    be sent, the next feedback comes at once. A declaration waits until all requests before it are
    decided.

    Args:
        in_flight: most requests without a bill at a time, ≥ 1.
        request_ids: prefix of the requests' ids.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        in_flight: int = 100,
        delays: Delays | None = None,
        seed: int = 0,
        request_ids: str = "r",
    ) -> None:
        self.scenario = scenario
        self.outcomes: list[Outcome] = []
        self.refused: dict[str, str] = {}
        self.in_flight = 0
        self.bills_sent = self.rewards_sent = 0
        self._limit = in_flight
        self._delays = delays or Delays()
        self._rng = np.random.default_rng(seed)
        self._ids = request_ids
        self._declarations = list(scenario.declarations)
        self._next = 0
        self._undecided: dict[str, int] = {}
        self._answered: dict[str, str] = {}
        self._due: list[tuple[float, int, CostReported | RewardObserved]] = []

    @property
    def done(self) -> bool:
        """Tell whether every request is answered and all feedback was sent."""
        return self._next == len(self.scenario) and not self._undecided and not self._due

    @property
    def waiting(self) -> int:
        """Return how many requests have no answer yet."""
        return len(self._undecided)

    def step(self) -> list[Sent]:
        """Return the events that clients send now, in order."""
        sent: list[Sent] = []
        while (feedback := self._next_feedback()) is not None:
            sent.append(feedback)
        while self._may_submit():
            sent += self._submit()
        return sent

    def answer(self, decision: RouteDecided) -> None:
        """Take a decision; bills and rewards come later. A repeated answer changes nothing.

        Raises:
            ValueError: a request got two different models, or was never sent.
        """
        request_id = decision.request_id
        if request_id in self._answered:
            if self._answered[request_id] != decision.model:
                raise ValueError(
                    f"request {request_id} went to {self._answered[request_id]} and to "
                    f"{decision.model}"
                )
            return
        if request_id not in self._undecided:
            raise ValueError(f"a decision for {request_id}, which was not asked or was refused")
        position = self._undecided.pop(request_id)
        self._answered[request_id] = decision.model
        k = self.scenario.models.index(decision.model)
        cost_usd, reward = (
            float(self.scenario.costs[position, k]),
            float(self.scenario.rewards[position, k]),
        )
        self.outcomes.append(Outcome(position, decision, cost_usd, reward))
        router_id = decision.router_id
        self._later(
            self._delays.cost,
            CostReported(router_id=router_id, request_id=request_id, cost_usd=cost_usd),
        )
        self._later(
            self._delays.reward,
            RewardObserved(
                router_id=router_id, request_id=request_id, reward=reward, source="judge"
            ),
        )

    def refuse(self, request_id: str, reason: str) -> None:
        """Take a dead letter as the answer of its request."""
        if self._undecided.pop(request_id, None) is not None:
            self.refused[request_id] = reason
            self.in_flight -= 1

    def _later(self, mean: int, event: CostReported | RewardObserved) -> None:
        delay = mean * self._rng.uniform(1.0 - self._delays.jitter, 1.0 + self._delays.jitter)
        heapq.heappush(
            self._due,
            (
                len(self.outcomes) + delay,
                # A unique number, which orders equal times; events are not comparable.
                2 * len(self.outcomes) + isinstance(event, RewardObserved),
                event,
            ),
        )

    def _may_submit(self) -> bool:
        # A request's cost depends on its position, so all before a declaration are decided before
        # it.
        declared_next = bool(self._declarations) and self._declarations[0][0] <= self._next
        if declared_next and self._undecided:
            return False
        return self._next < len(self.scenario) and self.in_flight < self._limit

    def _next_feedback(self) -> CostReported | RewardObserved | None:
        # Time is counted in decisions: without further ones, later feedback would wait for ever.
        stuck = not self._undecided and not self._may_submit()
        if not self._due or (self._due[0][0] > len(self.outcomes) and not stuck):
            return None
        event = heapq.heappop(self._due)[2]
        if isinstance(event, CostReported):
            self.bills_sent += 1
            self.in_flight -= 1
        else:
            self.rewards_sent += 1
        return event

    def _submit(self) -> list[Sent]:
        position, scenario = self._next, self.scenario
        sent: list[Sent] = []
        while self._declarations and self._declarations[0][0] <= position:
            sent.append(self._declarations.pop(0)[1])
        request_id = f"{self._ids}-{position + 1:05d}"
        self._undecided[request_id] = position
        self._next += 1
        self.in_flight += 1
        if scenario.contexts is not None:
            context = tuple(scenario.contexts[position].tolist())
            return [
                *sent,
                RequestSubmitted(
                    router_id=scenario.router_id, request_id=request_id, context=context
                ),
            ]
        return [
            *sent,
            RequestSubmitted(
                router_id=scenario.router_id,
                request_id=request_id,
                prompt=scenario.prompts[position],
            ),
        ]
