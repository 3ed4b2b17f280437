"""Policies compared on a history that knows only the called models: what each chose, beside what came of history's choice."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from router_state.config import Matrix, Vector
from streams.replay.cases import Case
from streams.replay.estimators import DirectModel, OffPolicy

BLOCK = 512


class Observed(NamedTuple):
    """What history says of an outcome in n cases.

    Attributes:
        at: which cases these are; models: the called ones.
        X: contexts, shape (n, d); propensities, values: shape (n,).
    """

    at: list[int]
    models: list[str]
    X: Matrix
    propensities: Vector
    values: Vector


def observed(cases: Sequence[Case], outcome: str) -> Observed:
    """Return what is known of an outcome, "reward" or "cost_usd", in those cases in which something is."""
    of = attrgetter(outcome)
    at = [i for i, case in enumerate(cases) if of(case) is not None]
    known = [cases[i] for i in at]
    return Observed(
        at,
        [case.model for case in known],
        np.array([case.x for case in known]),
        np.array([case.propensity for case in known]),
        np.array([of(case) for case in known]),
    )


class Comparison:
    """Move the off-policy estimates of several policies on, by blocks of cases, small ones at first.

    What is expected of a block was fitted on earlier blocks only.

    Args:
        estimates: of every policy those of its reward and of its cost.
    """

    def __init__(self, estimates: Sequence[tuple[OffPolicy, OffPolicy]]) -> None:
        self._estimates = estimates
        self._models = DirectModel(), DirectModel()
        self._cases: list[Case] = []
        self._choices: list[list[str | None]] = []
        self._settled = 0

    def observe(self, case: Case, choices: list[str | None]) -> None:
        """Take one case in, and what every policy chose; None: nothing."""
        self._cases.append(case)
        self._choices.append(choices)
        if len(self._cases) > min(BLOCK, self._settled // 4):
            self.settle()

    def settle(self) -> None:
        """Let everything that was observed count."""
        for outcome, q, estimates in zip(("reward", "cost_usd"), self._models, zip(*self._estimates, strict=True), strict=True):
            found = observed(self._cases, outcome)
            if not found.at:
                continue
            expected = q.predict_many(found.models, found.X)
            for policy, estimate in enumerate(estimates):
                choices = [self._choices[i][policy] for i in found.at]
                made = np.array([choice is not None for choice in choices])
                agrees = np.array([a == b for a, b in zip(choices, found.models, strict=True)], dtype=np.float64)
                q_policy = q.predict_many(choices, found.X)
                columns = agrees, found.propensities, found.values, q_policy, expected
                estimate.observe(*(column[made] for column in columns))
            q.observe(found.models, found.X, found.values)
        self._settled += len(self._cases)
        self._cases.clear()
        self._choices.clear()
