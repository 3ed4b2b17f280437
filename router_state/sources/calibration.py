"""Calibrate judges: subtract their offsets from their labels, and set aside uninformative judges.

A regression is linear in its labels: A = Σ w·xxᵀ, b = Σ w·y·x. So the offset that is subtracted
from a judge's labels of a model can be changed at any time, for past labels too, exactly and in
O(d²). All these labels can be taken out of the regression, and put in again, in O(d³).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from router_state.arms import Arms
from router_state.changes import Journal
from router_state.config import Vector
from router_state.kernel import conclude_with, exp_of
from router_state.record import Label
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.learned_labels import LearnedLabels, Of, piece_of
from router_state.sources.offsets import ModelPairs, offsets
from router_state.sources.pair_sums import LEAST_SPREAD, Moments, Within
from router_state.sources.parting import Cell
from router_state.sources.uninformative import is_uninformative


class Calibration:
    """The labels of judges as models have learned them; this object alone changes them.

    Attributes:
        declared: the router's sources; cells: pairs by judge and model, see `MeasuredSources`.
        labels: sums of the labels that are in force, by judge and model.
    """

    __slots__ = ("cells", "declared", "journal", "labels")

    def __init__(self, journal: Journal, cells: dict[Of, Cell]) -> None:
        self.journal, self.cells, self.declared = journal, cells, DeclaredSources()
        self.labels: dict[Of, LearnedLabels] = {}

    def declare(self, declared: DeclaredSources, arms: Arms) -> None:
        """Put a declaration in force. If a source is no longer a judge, its offset is no longer
        subtracted from its labels."""
        self.declared = declared
        gone = [of for of in self.labels if of[0] not in declared.judges]
        for judge in dict.fromkeys((*declared.judges, *(judge for judge, _ in gone))):
            self.follow(judge, arms)
        self._drop(gone)

    def without(self, model: str, arms: Arms) -> None:
        """Forget a model."""
        self._drop([of for of in self.labels if of[1] == model])
        for judge in self.declared.judges:
            self.follow(judge, arms)

    def _drop(self, gone: list[Of]) -> None:
        for of in gone:
            del self.labels[of]
            self.journal.pieces.add(piece_of(of))

    # One label.

    def counted(self, of: Of, born: int | None) -> LearnedLabels | None:
        """Return the sums in which a label is counted; None: the label is in no sums, or its sums
        are gone.

        Args:
            born: `born` of the sums in which the label was counted.
        """
        one = self.labels.get(of)
        return None if one is None or one.born != born else one

    def begun(self, of: Of, arms: Arms, born: int) -> LearnedLabels | None:
        """Return the sums in which a new label of a judge and model is counted. None: the source is
        no judge, or its model is not in the portfolio. For new sums the next pair sets the offset.
        """
        judge, model = of
        if judge not in self.declared.judges or arms.find(model) is None:
            return None
        if of not in self.labels:
            self.labels[of] = LearnedLabels.empty(arms.d, born, aside=self.is_aside(judge))
        return self.labels[of]

    def count(
        self, of: Of, arms: Arms, x: Vector, label: Label, *, weight: float, times: float
    ) -> None:
        """Count a label that the model has learned; `times` −1 removes it.

        Args:
            weight: the label's weight when it was learned.
        """
        now = arms[of[1]].rewards.forgotten
        left = times * exp_of(label.forgotten - now)
        self.labels[of].add(x, label.reward, weight, left, now)
        self.journal.pieces.add(piece_of(of))

    def shift(self, model: str, offset: float) -> None:
        """Note that a model's regression has raised all its labels by `offset`."""
        for of, one in self.labels.items():
            if of[1] == model:
                one.shift(offset)
                self.journal.pieces.add(piece_of(of))

    # All labels of a judge.

    def follow(self, judge: str, arms: Arms) -> None:
        """Apply the present offset of a judge to the labels that models have learned from that
        judge."""
        within, was = self._within(judge, arms), self.is_aside(judge)
        aside = self.declared.may_set_aside(judge) and is_uninformative(within, already=was)
        self._take_off(judge, arms, self._offsets(judge, arms, within))
        if aside != was and any(True for _ in self._of(judge)):
            if aside:
                _take_noise_of_gold(arms, within)
            self._set_aside(judge, arms, aside)

    def is_aside(self, judge: str) -> bool:
        """Tell whether a judge is set aside: its labels are uninformative, and are not learned."""
        return any(one.aside for _, one in self._of(judge))

    def _within(self, judge: str, arms: Arms) -> Within:
        # In the order of the arms: sums of floats depend on the order.
        cells = [self.cells.get((judge, model)) for model in arms.names]
        return Within.of([cell.all for cell in cells if cell is not None])

    def _offsets(self, judge: str, arms: Arms, within: Within) -> dict[str, float]:
        """Return the offset that is subtracted from a judge's labels, by model."""
        if not self.declared.calibrates(judge):
            return {}
        models: dict[str, ModelPairs] = {}
        every = Moments()
        for model in arms.names:
            cell, one = self.cells.get((judge, model)), self.labels.get((judge, model))
            pairs = (0.0, 0.0, 0.0)
            if cell is not None:
                every, pairs = every.plus(cell.all), cell.last_means()
            models[model] = ModelPairs(*pairs, *((0.0, 0.0) if one is None else one.mean()))
        return offsets(models, within, Within.of([every]))

    def _take_off(self, judge: str, arms: Arms, offsets: dict[str, float]) -> None:
        """Take these offsets off all labels of a judge, in place of those before."""
        for of, one in self._of(judge):
            offset, arm = offsets.get(of[1], 0.0), arms.find(of[1])
            if offset == one.offset or arm is None:
                continue
            one.forget(arm.rewards.forgotten)
            arm.rewards.revise(one.in_regression(), difference=one.offset - offset, discount=1.0)
            one.offset = offset
            self.journal.pieces.add(piece_of(of))
            self.journal.jumped = True

    def _set_aside(self, judge: str, arms: Arms, aside: bool) -> None:
        """Take all labels of a judge out of the regressions, or put them in again."""
        sums: list[Vector | None] = [None] * len(arms)
        for of, one in self._of(judge):
            arm = arms.find(of[1])
            if one.aside == aside or arm is None:
                continue
            one.forget(arm.rewards.forgotten)
            sums[arms.row[of[1]]] = one.taught() * (-1.0 if aside else 1.0)
            one.aside = aside
            self.journal.pieces.add(piece_of(of))
        conclude_with(arms.rewards, arms.regressions, sums)
        self.journal.jumped = True

    def _of(self, judge: str) -> Iterator[tuple[Of, LearnedLabels]]:
        return ((of, one) for of, one in self.labels.items() if of[0] == judge)

    @property
    def pieces(self) -> tuple[str, ...]:
        """Names of the pieces with the sums."""
        return tuple(map(piece_of, self.labels))

    def faults(self, arms: Arms) -> Iterator[str]:
        """Yield a description of each part of the sums that is impossible."""
        for (judge, model), one in self.labels.items():
            arm = arms.find(model)
            is_known = arm is not None and 0.0 <= one.forgotten <= arm.rewards.forgotten
            if not (is_known and np.isfinite((*one.sums, one.offset)).all()):
                yield "learned labels of judges"
            if one.aside != self.is_aside(judge) or (
                one.aside and not self.declared.may_set_aside(judge)
            ):
                yield "labels of judges that are set aside"


def _take_noise_of_gold(arms: Arms, within: Within) -> None:
    """Let labels of gold alone say how noisy a label is."""
    prior = arms.rewards
    prior.noise, prior.noise_count = max(within.rr, LEAST_SPREAD), float(within.n)
    prior.fourth = 3.0 * prior.noise**2
