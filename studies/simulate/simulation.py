"""Run policies over cases in a world; bills and rewards come some decisions later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from router_state.errors import RouterStateError
from schemas.routers import RouterDeclared
from studies.history.happened import Declared
from studies.simulate.cases import Case
from studies.simulate.compare import BLOCK, Comparison, cost_model, learn, reward_model
from studies.simulate.estimators import OffPolicy
from studies.simulate.policies import Decider
from studies.simulate.times import UNTOLD, Seconds, Times
from studies.simulate.track import Track
from studies.simulate.world import World


class Outcomes:
    """Rewards and costs of any model on a case: those observed, those that the data hold for other
    models, or predictions from the history.
    """

    def __init__(self) -> None:
        self.rewards, self.costs = reward_model(), cost_model()
        self.times = Times()
        self._waiting: list[Case] = []

    def fit(self, case: Case) -> None:
        """Collect an observed case; predictions contain it after the next `settle`."""
        self.times.fit(case)
        if not case.outcomes:
            self._waiting.append(case)
            if len(self._waiting) >= BLOCK:
                self.settle()

    def settle(self) -> None:
        """Learn from all collected cases."""
        learn(self._waiting, self.rewards, self.costs)
        self._waiting.clear()
        self.times.settle()

    def of(self, case: Case, model: str) -> tuple[float | None, float | None, bool]:
        """Return reward and cost of a call, None where nobody reported one, and whether they are a
        guess.
        """
        if model in case.outcomes:
            return *case.outcomes[model], False
        if model == case.model:
            return case.reward, case.cost_usd, False
        reward = (
            # Where nobody judged what was called, nobody would have judged another model: the
            # labels stay as sparse.
            None if case.reward is None else min(1.0, max(0.0, self.rewards.predict(model, case.x)))
        )
        cost = None if case.cost_usd is None else max(0.0, self.costs.predict(model, case.x))
        return reward, cost, True


@dataclass(slots=True)
class PolicyRun:
    """A policy during a simulation: its decider, its due feedback, its track, and its off-policy
    estimates.

    `due` holds feedback by the number of decisions after which it comes.
    """

    decider: Decider
    track: Track
    reward: OffPolicy = field(default_factory=OffPolicy)
    cost: OffPolicy = field(default_factory=OffPolicy)
    made: int = 0
    era: int = -1
    last: str | None = None
    budget_usd: float | None = None
    due: dict[int, list[tuple[bool, str, float, Seconds]]] = field(default_factory=dict)

    def later(
        self,
        lags: list[int],
        request_id: str,
        value: float,
        *,
        is_bill: bool,
        times: Seconds = UNTOLD,
    ) -> None:
        """Schedule feedback, in decisions from now."""
        for lag in lags:
            at = self.made + lag
            waiting = self.due.get(at)
            if waiting is None:
                self.due[at] = [(is_bill, request_id, value, times)]
            else:
                waiting.append((is_bill, request_id, value, times))

    def feed(self) -> None:
        """Deliver the bills and rewards that are due at the present decision."""
        for is_bill, request_id, value, times in self.due.pop(self.made, ()):
            if is_bill:
                self.decider.bill(request_id, value, times)
            else:
                self.decider.reward(request_id, value)

    def finish(self) -> None:
        """Deliver everything that is left, and end the track."""
        for at in sorted(self.due):
            self.made = at
            self.feed()
        self.track.finish()


class Simulation:
    """Several policies over the same cases, each with its own state.

    Args:
        runs: policies by name.
        compare: also estimate what each policy would have earned, and how well that is known.
        weighted: use the logged propensities as well.
    """

    def __init__(
        self,
        world: World,
        outcomes: Outcomes,
        runs: dict[str, PolicyRun],
        *,
        compare: bool,
        weighted: bool = True,
    ) -> None:
        self.world = world
        self.runs = runs
        self._outcomes = outcomes
        self._comparison = (
            Comparison([(run.reward, run.cost) for run in runs.values()], weighted=weighted)
            if compare
            else None
        )
        self._base: RouterDeclared | None = None
        self._declared = 0

    def play(self, cases: Iterable[Case | Declared]) -> None:
        """Take every case through every policy."""
        for case in cases:
            if type(case) is Declared:
                if case.router is not None:
                    self._base = case.router
                    self._declared += 1
                continue
            # A request before the first declaration on the log: no policy could decide it.
            if self._base is None:
                continue
            for run in self.runs.values():
                self._step(run, case)
            self._compare(case)
        if self._comparison is not None:
            self._comparison.conclude(self._outcomes.rewards, self._outcomes.costs)
        for run in self.runs.values():
            run.finish()

    def _step(self, run: PolicyRun, case: Case) -> None:
        world, base = self.world, self._base
        assert base is not None
        # One number for changes by the scenario and by the history.
        era = world.era(case.index) + (self._declared << 32)
        if era != run.era:
            run.era = era
            router = world.router(base, case.index)
            run.budget_usd = router.budget_usd_per_request
            run.decider.declare(router, at=case.at)
        # Without events each request is made once, and nothing of it is to be looked up.
        if not world.placed:
            self._call(run, case, 0)
            return
        for copy in range(world.copies(case.index)):
            self._call(run, case, copy)

    def _call(self, run: PolicyRun, case: Case, copy: int) -> None:
        world, track, index = self.world, run.track, case.index
        run.last = None
        # Delivered before the decision, which knew it.
        run.feed()
        request_id = case.request_id if copy == 0 else f"{case.request_id}~{copy}"
        try:
            model, lambda_t = run.decider.decide(request_id, case, at=case.at)
        except RouterStateError as error:
            track.refused[error.reason] = track.refused.get(error.reason, 0) + 1
            return
        run.made += 1
        run.last = model
        reward, cost, modelled = self._outcomes.of(case, model)
        times = self._outcomes.times.of(case, model)
        cost_lags, reward_lags = [case.cost_lag], [case.reward_lag]
        if world.placed:
            reward_here, cost_here = world.outcome(index, model, reward or 0.0, cost or 0.0)
            reward, cost = (
                None if reward is None else reward_here,
                None if cost is None else cost_here,
            )
            times = world.times(index, model, times)
            cost_lags = world.lags(index, copy, "costs", case.cost_lag)
            reward_lags = world.lags(index, copy, "rewards", case.reward_lag)
        track.observe(
            index,
            model=model,
            reward=reward,
            cost_usd=cost,
            budget_usd=run.budget_usd,
            lambda_t=lambda_t,
            modelled=modelled,
            seconds=times.answer,
        )
        if cost is not None:
            run.later(cost_lags, request_id, cost, is_bill=True, times=times)
        if reward is not None:
            run.later(reward_lags, request_id, reward, is_bill=False)
        if alerts := run.decider.take_alerts():
            track.alerts += [(index, alert.kind, alert.model, alert.direction) for alert in alerts]

    def _compare(self, case: Case) -> None:
        if self._comparison is not None:
            self._comparison.observe(case, [run.last for run in self.runs.values()])
