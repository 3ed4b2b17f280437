"""Run policies over cases in a world: decisions now, bills and rewards when so many more requests have been decided."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from router_state.errors import RouterStateError
from schemas.routers import RouterDeclared
from streams.replay.cases import Case
from streams.replay.estimators import DirectModel, OffPolicy
from streams.replay.merge import Declared
from streams.replay.policies import Decider
from streams.replay.track import Track
from streams.replay.world import World


@dataclass(slots=True)
class Outcomes:
    """What any model earns and costs on a case: as observed, as the data says, else as the direct model of the history expects."""

    rewards: DirectModel = field(default_factory=DirectModel)
    costs: DirectModel = field(default_factory=DirectModel)

    def fit(self, case: Case) -> None:
        """Learn from what was observed."""
        if case.outcomes:
            return
        if case.reward is not None:
            self.rewards.observe(case.model, case.x, case.reward)
        if case.cost_usd is not None:
            self.costs.observe(case.model, case.x, case.cost_usd)

    def of(self, case: Case, model: str) -> tuple[float | None, float | None, bool]:
        """Return reward and cost of a call, None where nobody reported one, and whether they are a guess."""
        if model in case.outcomes:
            return *case.outcomes[model], False
        if model == case.model:
            return case.reward, case.cost_usd, False
        reward = None if case.reward is None else min(1.0, max(0.0, self.rewards.predict(model, case.x)))
        cost = None if case.cost_usd is None else max(0.0, self.costs.predict(model, case.x))
        return reward, cost, True


@dataclass(slots=True)
class Run:
    """One policy under way: its decider, what is due to it, what it did, and what history says it would have earned."""

    decider: Decider
    track: Track
    reward: OffPolicy = field(default_factory=OffPolicy)
    cost: OffPolicy = field(default_factory=OffPolicy)
    made: int = 0
    era: int = -1
    last: str | None = None
    budget_usd: float | None = None
    order: int = 0
    due: list[tuple[int, int, bool, str, float]] = field(default_factory=list)

    def later(self, times: list[int], request_id: str, value: float, *, is_bill: bool) -> None:
        """Schedule feedback, in decisions from now."""
        for lag in times:
            self.order += 1
            heapq.heappush(self.due, (self.made + lag, self.order, is_bill, request_id, value))

    def feed(self, *, until: int) -> None:
        """Deliver what is due."""
        while self.due and self.due[0][0] <= until:
            _, _, is_bill, request_id, value = heapq.heappop(self.due)
            if is_bill:
                self.decider.bill(request_id, value)
            else:
                self.decider.reward(request_id, value)


class Simulation:
    """Several policies over the same cases, each with its own state.

    Args:
        runs: policies by name.
        compare: also estimate from the logged propensities what each policy would have earned.
    """

    def __init__(self, world: World, outcomes: Outcomes, runs: dict[str, Run], *, compare: bool) -> None:
        self.world = world
        self.runs = runs
        self._outcomes = outcomes
        self._earlier = Outcomes() if compare else None
        self._base: RouterDeclared | None = None
        self._declared = 0

    def play(self, cases: Iterable[Case | Declared]) -> None:
        """Take every case through every policy."""
        for case in cases:
            if isinstance(case, Declared):
                if case.router is not None:
                    self._base = case.router
                    self._declared += 1
                continue
            if self._base is None:
                continue
            for run in self.runs.values():
                self._step(run, case)
            if self._earlier is not None:
                self._compare(case)
        for run in self.runs.values():
            run.feed(until=run.made + 10**9)

    def _step(self, run: Run, case: Case) -> None:
        world, base = self.world, self._base
        assert base is not None
        era = world.era(case.index) + (self._declared << 32)
        if era != run.era:
            run.era = era
            router = world.router(base, case.index)
            run.budget_usd = router.budget_usd_per_request
            run.decider.declare(router, at=case.at)
        for copy in range(world.copies(case.index)):
            self._call(run, case, copy)

    def _call(self, run: Run, case: Case, copy: int) -> None:
        world, track, index = self.world, run.track, case.index
        run.feed(until=run.made)
        request_id = case.request_id if copy == 0 else f"{case.request_id}~{copy}"
        try:
            model, lambda_t = run.decider.decide(request_id, case, at=case.at)
        except RouterStateError as error:
            track.refused[error.reason] = track.refused.get(error.reason, 0) + 1
            return
        run.made += 1
        reward, cost, modelled = self._outcomes.of(case, model)
        known_reward, known_cost = reward is not None, cost is not None
        reward_here, cost_here = world.outcome(index, model, reward or 0.0, cost or 0.0)
        run.last = model
        track.observe(
            index,
            model=model,
            reward=reward_here if known_reward else None,
            cost_usd=cost_here if known_cost else None,
            budget_usd=run.budget_usd,
            lambda_t=lambda_t,
            modelled=modelled,
        )
        if known_cost:
            run.later(world.lags(index, copy, "costs", case.cost_lag), request_id, cost_here, is_bill=True)
        if known_reward:
            run.later(world.lags(index, copy, "rewards", case.reward_lag), request_id, reward_here, is_bill=False)
        for alert in run.decider.alerts():
            track.alerts.append((index, alert.kind, alert.model, alert.direction))

    def _compare(self, case: Case) -> None:
        """Move on the off-policy estimates; q was fitted on earlier cases only."""
        earlier = self._earlier
        assert earlier is not None
        for run in self.runs.values():
            model = run.last
            if model is None:
                continue
            for estimate, q, value in ((run.reward, earlier.rewards, case.reward), (run.cost, earlier.costs, case.cost_usd)):
                if value is not None:
                    estimate.observe(
                        model=model,
                        logged=case.model,
                        propensity=case.propensity,
                        outcome=value,
                        q_policy=q.predict(model, case.x),
                        q_logged=q.predict(case.model, case.x),
                    )
        if case.reward is not None:
            earlier.rewards.observe(case.model, case.x, case.reward)
        if case.cost_usd is not None:
            earlier.costs.observe(case.model, case.x, case.cost_usd)
