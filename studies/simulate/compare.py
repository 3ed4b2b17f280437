"""Compare policies on a history that holds only the called models' outcomes, by off-policy
estimates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from router_state.config import Matrix, Vector
from studies.simulate.cases import Case
from studies.simulate.estimators import DirectModel, OffPolicy

BLOCK = 512
"""Cases that are settled together, at most."""


def learn(cases: Sequence[Case], rewards: DirectModel, costs: DirectModel) -> None:
    """Fit direct models to what was observed."""
    models, X = _called(cases)
    rewards.observe(models, X, _rewards(cases))
    costs.observe(models, X, _costs(cases))


class Comparison:
    """Off-policy estimates of several policies, updated by blocks of cases, small ones at first.

    Expectations for a block are fitted on earlier blocks only.

    Args:
        estimates: of every policy those of its reward and of its cost.
    """

    def __init__(self, estimates: Sequence[tuple[OffPolicy, OffPolicy]]) -> None:
        self._estimates = estimates
        self._rewards, self._costs = DirectModel(), DirectModel()
        self._cases: list[Case] = []
        self._choices: list[list[str | None]] = []
        self._settled = 0

    def observe(self, case: Case, choices: list[str | None]) -> None:
        """Take one case in, and what every policy chose; None: nothing."""
        self._cases.append(case)
        self._choices.append(choices)
        # A block has at most half as many cases as came before, so that few cases are judged by an
        # empty fit.
        if len(self._cases) > min(BLOCK, self._settled // 2):
            self.settle()

    def settle(self) -> None:
        """Let everything that was observed count."""
        if not self._cases:
            return
        models, X = _called(self._cases)
        propensities = np.array([case.propensity for case in self._cases])
        outcomes = (
            (_rewards(self._cases), self._rewards.predict_all(X)),
            (_costs(self._cases), self._costs.predict_all(X)),
        )
        for estimates, choices in zip(
            self._estimates, zip(*self._choices, strict=True), strict=True
        ):
            agrees = np.array(
                [a == b for a, b in zip(choices, models, strict=True)], dtype=np.float64
            )
            chance = np.array(list(map(_had_a_chance, self._cases, choices)))
            made = np.array([choice is not None for choice in choices])
            for estimate, (values, expected) in zip(estimates, outcomes, strict=True):
                columns = agrees, propensities, values, expected.of(choices), expected.of(models)
                # A policy that chose nothing, and a case without an outcome, say nothing about a
                # mean.
                known = made & np.isfinite(values)
                estimate.observe(*(column[known] for column in columns), chance=chance[known])
        # Learned after the block was estimated: q must not have seen the cases that it predicts.
        learn(self._cases, self._rewards, self._costs)
        self._settled += len(self._cases)
        self._cases.clear()
        self._choices.clear()


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
