"""Compare policies on a history that holds only the called models' outcomes, by off-policy
estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt

from router_state.config import Matrix, Vector
from studies.simulate.cases import Case
from studies.simulate.direct import DirectModel, Expectations
from studies.simulate.estimators import OffPolicy, agreement

BLOCK = 512
"""Cases that are settled together, at most."""


def reward_model() -> DirectModel:
    """Return a model of rewards in [0, 1] that has seen nothing."""
    return DirectModel(noise=0.09)


def cost_model() -> DirectModel:
    """Return a model of bills that has seen nothing."""
    return DirectModel(noise=0.3, relative=True)


def learn(cases: Sequence[Case], rewards: DirectModel, costs: DirectModel) -> None:
    """Fit direct models to what was observed."""
    models, X = _called(cases)
    rewards.observe(models, X, _rewards(cases))
    costs.observe(models, X, _costs(cases))


class Comparison:
    """Off-policy estimates of several policies, updated by blocks of cases, small ones at first.

    Expectations for a block are fitted on earlier blocks only.

    Args:
        estimates: for every policy, the estimates of its reward and of its cost.
        weighted: whether history has the propensities of its choices.
    """

    def __init__(self, estimates: Sequence[tuple[OffPolicy, OffPolicy]], *, weighted: bool) -> None:
        self._estimates, self._weighted = estimates, weighted
        self._rewards, self._costs = reward_model(), cost_model()
        self._cases: list[Case] = []
        self._choices: list[list[str | None]] = []
        self._settled = 0

    def observe(self, case: Case, choices: list[str | None]) -> None:
        """Add one case, with the choice of every policy; None: the policy chose nothing."""
        self._cases.append(case)
        self._choices.append(choices)
        # A block has at most half as many cases as came before, so that few cases are judged by an
        # empty fit.
        if len(self._cases) > min(BLOCK, self._settled // 2):
            self.settle()

    def settle(self) -> None:
        """Settle the observed cases: add them to the estimates, and fit the models to them."""
        if not self._cases:
            return
        block = _Block(self._cases)
        expected = block.expected(self._rewards, self._costs) if self._weighted else ()
        for estimates, choices in zip(
            self._estimates, zip(*self._choices, strict=True), strict=True
        ):
            block.fill(estimates, choices)
            if expected:
                block.weigh(estimates, choices, expected)
        # Learned after the block was estimated: q must not have seen the cases that it predicts.
        if self._weighted:
            learn(self._cases, self._rewards, self._costs)
        self._settled += len(self._cases)
        self._cases.clear()
        self._choices.clear()

    def conclude(self, rewards: DirectModel, costs: DirectModel) -> None:
        """Finish the estimates, by models that were fitted to all of history."""
        self.settle()
        for of_reward, of_cost in self._estimates:
            of_reward.conclude(rewards)
            of_cost.conclude(costs)


class _Block:
    """Some cases that are settled together."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._models, self._X = _called(cases)
        self._observed = _rewards(cases), _costs(cases)

    def expected(self, *models: DirectModel) -> tuple[Expectations, ...]:
        """Return what these models expect of the cases."""
        return tuple(model.predict_all(self._X) for model in models)

    def fill(self, estimates: tuple[OffPolicy, OffPolicy], choices: Sequence[str | None]) -> None:
        """Add the known outcomes of a policy's choices."""
        agrees = agreement(choices, self._models) > 0.0
        for outcome, (estimate, values) in enumerate(zip(estimates, self._observed, strict=True)):
            known = self._known(choices, values)
            told = [
                case.outcomes[choice or ""][outcome] if choice in case.outcomes else np.nan
                for case, choice in zip(self._cases, choices, strict=True)
            ]
            became = np.where(agrees, values, told)
            estimate.filled.add(list(compress(choices, known)), self._X[known], became[known])

    def weigh(
        self,
        estimates: tuple[OffPolicy, OffPolicy],
        choices: Sequence[str | None],
        expected: Sequence[Expectations],
    ) -> None:
        """Add the weighted outcomes of history's choices to a policy's estimates."""
        propensities = np.array([case.propensity for case in self._cases])
        chance = np.array(list(map(_had_a_chance, self._cases, choices)))
        for estimate, values, q in zip(estimates, self._observed, expected, strict=True):
            known = self._known(choices, values)
            columns = propensities, values, q.of(choices), q.of(self._models)
            estimate.observe(
                list(compress(choices, known)),
                list(compress(self._models, known)),
                *(column[known] for column in columns),
                chance=chance[known],
            )

    def _known(self, choices: Sequence[str | None], values: Vector) -> npt.NDArray[np.bool_]:
        """Return for each case whether it has a choice and an outcome, so that it counts in a
        mean.
        """
        made = np.array([choice is not None for choice in choices])
        return made & np.isfinite(values)


def _had_a_chance(case: Case, choice: str | None) -> bool:
    """Tell whether history could have made the policy's choice: it did, or it chose at random among
    models that include it.
    """
    if choice == case.model:
        return True
    return case.propensity < 1.0 and (case.eligible is None or choice in case.eligible)


def _called(cases: Sequence[Case]) -> tuple[list[str], Matrix]:
    return [case.model for case in cases], np.array([case.x for case in cases])


def _rewards(cases: Sequence[Case]) -> Vector:
    return np.array([case.reward for case in cases], dtype=np.float64)  # None becomes NaN


def _costs(cases: Sequence[Case]) -> Vector:
    return np.array([case.cost_usd for case in cases], dtype=np.float64)
