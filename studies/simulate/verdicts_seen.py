"""Learn from a router's history what its verifiers' verdicts mean, as its family learns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from router_state.attempts.shared_verdicts import SharedVerdicts
from router_state.attempts.verdicts import Attempts
from router_state.attempts.verifier import Verifier
from router_state.config import Matrix, Vector
from router_state.families.family_sums import Sums
from router_state.kernel import VerdictTable
from router_state.learning.guess import REWARDS
from router_state.shared_numbers import ByModel, Numbers, Packed, packed
from router_state.sources.measured_sources import MeasuredSources
from studies.history.happened import Billed, Declared, Happened, Rewarded
from studies.history.request_labels import UNDECLARED, RequestLabels, SourceLabel
from studies.simulate.cases import Case


@dataclass(frozen=True, slots=True)
class Expecting:
    """A model's regression of rewards: θ, V = A⁻¹ and σ²."""

    theta: Vector
    V: Matrix
    noise: float

    @classmethod
    def of(cls, sums: Sums | None, d: int, noise: float) -> Expecting:
        """Return the regression of these sums; without any, the first guess."""
        if sums is None:
            return cls(REWARDS.mean * np.eye(d)[-1], np.eye(d), noise)
        V = np.asarray(np.linalg.inv(sums.A + np.eye(d)), np.float64)
        return cls(V @ sums.b, V, noise)

    def look(self, x: Vector) -> tuple[float, float]:
        """Return the mean of an answer's expected reward, and its variance."""
        return float(x @ self.theta), float(self.noise * (x @ self.V @ x))


class VerdictsSeen:
    """Verdicts and labels of first calls, noted as a history passes. What follows a failed answer
    is right less often than its model, so that later calls do not count. Of several verdicts or
    labels of one answer the one counts that counts for a router.

    Args:
        rank_of: rank of a label's source.

    Attributes:
        verifiers: the last declared ones whose verdicts are not the truth.
    """

    name: ClassVar[str] = Attempts.name

    def __init__(self, rank_of: Callable[[str], int]) -> None:
        self.verifiers: dict[str, Verifier] = {}
        self._rank_of, self._sources = rank_of, UNDECLARED
        self._verdicts: dict[str, dict[str, tuple[int, float]]] = {}
        self._labels: dict[str, RequestLabels] = {}
        self._went_on: set[str] = set()
        self._cases: list[tuple[str, str, Vector]] = []
        self._expected: dict[str, Expecting] = {}

    def through(self, happened: Iterable[Happened]) -> Iterator[Happened]:
        """Yield what happened."""
        for event in happened:
            if isinstance(event, Declared) and event.router is not None:
                declared = Attempts.read(event.router)
                found = {} if declared is None else declared.verifiers
                self.verifiers = {name: one for name, one in found.items() if not one.exact}
                self._sources = MeasuredSources.read(event.router) or UNDECLARED
            elif isinstance(event, Billed) and event.bill.attempt and event.bill.request_id:
                self._went_on.add(event.bill.request_id)
            elif isinstance(event, Rewarded) and event.reward.request_id is not None:
                self._note(event, event.reward.request_id)
            yield event

    def _note(self, event: Rewarded, request_id: str) -> None:
        said = event.reward
        if said.attempt:
            self._went_on.add(request_id)
        elif said.verifier is not None:
            verdicts = self._verdicts.setdefault(request_id, {})
            revision, _ = verdicts.get(said.verifier, (-1, 0.0))
            if said.verdict is not None and said.revision > revision:
                verdicts[said.verifier] = said.revision, float(said.verdict)
        elif said.source is not None and (said.attempt == 0 or request_id not in self._went_on):
            labels = self._labels.setdefault(request_id, RequestLabels())
            label = SourceLabel(said.reward, self._rank_of(said.source), said.revision)
            labels.take(said.source, label, self._sources)

    def cases(self, cases: Iterable[Case | Declared]) -> Iterator[Case | Declared]:
        """Yield the cases of the history."""
        for case in cases:
            if isinstance(case, Case) and self.verifiers and not case.redirected:
                self._cases.append((case.request_id, case.model, case.x))
            yield case

    def numbers(
        self, models: Iterable[str], rewards: Mapping[str, Sums], d: int, noise: float
    ) -> dict[str, Packed]:
        """Return the numbers of all verifiers by model.

        Args:
            rewards: sums of rewards by model; noise: the variance around them.
        """
        self._expected = {name: Expecting.of(rewards.get(name), d, noise) for name in models}
        return packed([self])

    def shares(self) -> ByModel:
        """Return what a router of this history shares."""
        found: dict[str, dict[str, Numbers]] = {}
        for name, one in self.verifiers.items():
            for model, numbers in self._learned(name, one).items():
                found.setdefault(model, {})[name] = numbers
        return found

    def take_shared(self, numbers: ByModel | None) -> None:
        """Take nothing: a history is over."""

    def _learned(self, name: str, verifier: Verifier) -> dict[str, Numbers]:
        table = VerdictTable(verifier.bins, tuple(self._expected))
        shared, row = SharedVerdicts(verifier.bins), {one: k for k, one in enumerate(table.names)}
        for request_id, model, x in self._cases:
            _, verdict = self._verdicts.get(request_id, {}).get(name, (0, None))
            k = row.get(model)
            if verdict is None or k is None or len(x) != len(self._expected[model].theta):
                continue
            j, (mean, variance) = verifier.bin_of(verdict), self._expected[model].look(x)
            table.see(k, j, mean)
            labels = self._labels.get(request_id)
            label = None if labels is None else labels.in_force(self._sources)
            if label is not None:
                shared.note(table, k, j, reward=mean, variance=variance, label=label.reward)
                table.learn(k, j, mean, variance, label.reward)
        return shared.shareable(table)
