"""Estimate the times of calls: of the called model from bills, of other models from a line each."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from studies.simulate.cases import Case
from studies.simulate.compare import BLOCK
from studies.simulate.direct import DirectModel

LEAST_SECONDS = 1e-3
"""Least seconds of a call: a time of 0 has no logarithm."""
BIN = math.log(1.05)
"""Width of the bins of times, in logarithms: quantiles are right to 5 %."""


class Seconds(NamedTuple):
    """Seconds of one call: up to the whole answer, and up to the first token; None: its bill has
    none."""

    answer: float | None = None
    first_token: float | None = None


UNTOLD = Seconds()
"""A call whose bill has no times."""


class Times:
    """The times of any model's call on a case. The time of a model that was not called is the
    direct model's expectation, times the recorded call's ratio of actual to expected time.
    """

    def __init__(self) -> None:
        self._models = DirectModel(noise=0.3), DirectModel(noise=0.3)
        self._waiting: list[Case] = []

    def fit(self, case: Case) -> None:
        """Store the observed times of a case; `settle` learns them."""
        if case.latency is None and case.first_token is None:
            return
        self._waiting.append(case)
        if len(self._waiting) >= BLOCK:
            self.settle()

    def settle(self) -> None:
        """Learn the stored times."""
        if not self._waiting:
            return
        names = [case.model for case in self._waiting]
        X = np.array([case.x for case in self._waiting])
        for model, name in zip(self._models, ("latency", "first_token"), strict=True):
            reported = [getattr(case, name) for case in self._waiting]
            logs = [
                math.nan if one is None else math.log(max(one, LEAST_SECONDS)) for one in reported
            ]
            model.observe(names, X, np.array(logs))
        self._waiting.clear()

    def of(self, case: Case, model: str) -> Seconds:
        """Return the times of a call."""
        reported = case.latency, case.first_token
        if reported == (None, None):
            return UNTOLD
        if model == case.model:
            return Seconds(*reported)
        return Seconds(
            *(
                None if one is None else self._guessed(direct, case, model, one)
                for direct, one in zip(self._models, reported, strict=True)
            )
        )

    def _guessed(self, direct: DirectModel, case: Case, model: str, reported: float) -> float:
        moved = direct.predict(model, case.x) - direct.predict(case.model, case.x)
        return reported * math.exp(min(max(moved, -20.0), 20.0))


def bin_of(seconds: float) -> int:
    """Return the bin of a time."""
    return round(math.log(max(seconds, LEAST_SECONDS)) / BIN)


def quantile(bins: dict[int, int], share: float) -> float | None:
    """Return the time within which this share of calls ended; None: no bill has a time."""
    left = share * sum(bins.values())
    for place, calls in sorted(bins.items()):
        left -= calls
        if left <= 0.0:
            return math.exp(place * BIN)
    return None
