"""The capability of sources: all labels of a request are kept, and judges are measured by gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Protocol

from msgspec import Struct, structs, to_builtins

from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.config import Vector
from router_state.events import Judged
from router_state.packing.framing import Json
from router_state.record import Label, RequestRecord, Weighed
from router_state.sources.calibration import Calibration
from router_state.sources.counted_pairs import NO_CELL, CountedPairs
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.label_pairs import ITSELF, Pair, pairs_of
from router_state.sources.learned_labels import PIECE as LABELS
from router_state.sources.learned_labels import LearnedLabels, piece_of, pieced
from router_state.sources.source_labels import Labels, SourceLabel, in_force, with_label
from router_state.sources.source_standing import standings
from router_state.wanted import wanted_of


class SourcesOnWire(Protocol):
    """Sources as they are declared."""

    gold: str
    judges: tuple[str, ...]

    @property
    def calibrate(self) -> Mapping[str, str] | None: ...


class OnWire(Protocol):
    """A router's declaration."""

    @property
    def sources(self) -> SourcesOnWire | None: ...


class RequestLabels(Struct, omit_defaults=True):
    """The labels of a request by source, and its pairs as they were counted. `born` is that of the
    `LearnedLabels` in which the label in force is counted; None: that label is counted in none.
    """

    labels: Labels = {}
    pairs: list[Pair] = []
    born: int | None = None


class MeasuredSources(Capability):
    """The sources of a router's labels. A router that declares no sources gets the capability with
    its first withdrawn label: the labels of that request are kept, so that an older label does not
    come back.

    Attributes:
        declared: the router's declaration of its sources.
        pairs: the pairs of labels that are counted.
        calibration: the judges' labels as models have learned them.
    """

    __slots__ = ("calibration", "declared", "pairs")
    name = "sources"
    declaration = DeclaredSources
    undeclared = True

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared = DeclaredSources()
        self.pairs = CountedPairs(arms, journal)
        self.calibration = Calibration(journal, self.pairs.cells)

    @classmethod
    def read(cls, wire: OnWire) -> DeclaredSources | None:
        """See Capability."""
        sources = wire.sources
        if sources is None:
            return None
        return DeclaredSources(sources.gold, sources.judges, dict(sources.calibrate or {}))

    @classmethod
    def document(cls, declared: DeclaredSources) -> dict[str, object]:
        """See Capability."""
        return {"sources": to_builtins(declared)}

    def declare(self, declared: DeclaredSources | None, *, now: float) -> None:
        """See Capability; what is known of a source that is declared no more is forgotten."""
        before, self.declared = self.declared, declared or DeclaredSources()
        self.pairs.declared = self.declared
        measured = set(self.declared.judges)
        # By another gold the judges are measured anew.
        if before.gold == self.declared.gold and before.gold is not None:
            measured.add(before.gold)
        elif before.gold is not None:
            measured.clear()
        self.pairs.drop(lambda source, model: source not in measured)
        self.calibration.declare(self.declared, self.arms)

    # A label.

    def weighed(self, record: RequestRecord, event: Judged) -> Weighed | None:
        """See Capability. Without declared sources, ranks decide which label counts, until a label
        of the request is withdrawn."""
        stored = self._stored(record)
        if self.declared.gold is None and event.reward is not None and not stored.labels:
            return None
        before = stored.labels or self._only(record)
        rank = self.declared.rank_of(event.source, event.rank)
        plan, attempt = record.plan, event.attempt
        if attempt is None:
            attempt = 0 if plan is None else plan.last
        new = SourceLabel(event.reward, rank, event.revision, attempt=attempt)
        labels = with_label(before, event.source, new)
        if labels is None:
            return Weighed(record.label, news=False)
        found, label = in_force(labels, self.declared), record.label
        # The one that was learned knows what is left of it.
        if found is not None and label is not None and found.is_as(label):
            found = label
        number = None if found is None else labels[found.source].attempt
        return Weighed(found, labels=labels, attempt=number)

    def _only(self, record: RequestRecord) -> Labels:
        """Return the label of a request that keeps no others."""
        label = record.label
        if label is None:
            return {}
        rank = self.declared.rank_of(label.source, label.rank)
        attempt = 0 if record.plan is None else max(record.plan.labelled, 0)
        return {label.source: SourceLabel(label.reward, rank, label.revision, attempt=attempt)}

    def taken(self, record: RequestRecord, event: Judged, labels: object, now: float) -> None:
        """See Capability: keep the labels, count their pairs, and raise alerts for judges that
        depart from gold."""
        if not isinstance(labels, dict):
            return
        all_labels: Labels = labels
        of_answer = all_labels
        judges = self.declared.judges
        model = None if self.arms.find(record.called) is None else record.called
        if record.plan is not None:  # only what was said of the attempt that the label is of
            of_answer = {
                name: one for name, one in all_labels.items() if one.attempt == record.plan.labelled
            }
        present = pairs_of(of_answer, self.declared, model)
        wanted = wanted_of(record)
        if wanted is not None and not wanted.drawn:
            # Who labels what nobody asked for chose it: that measures no judge.
            present = [one for one in present if one.model == ITSELF and one.source in judges]
        stored = self._stored(record)
        before = stored.pairs
        pairs = self.pairs.replace(before, present, born=self.offset, now=now)
        self._store(record, structs.replace(stored, labels=all_labels, pairs=pairs))
        for judge in dict.fromkeys(pair.source for pair in (*before, *pairs)):
            if judge in judges:
                self.calibration.follow(judge, self.arms)

    def _stored(self, record: RequestRecord) -> RequestLabels:
        return record.kept_by(self.name, RequestLabels) or RequestLabels()

    def _store(self, record: RequestRecord, stored: RequestLabels) -> None:
        record.keep(self.name, to_builtins(stored))

    # What models learn of it.

    def worth(self, record: RequestRecord, label: Label, learned: bool) -> float | None:
        """See Capability: a judge's label less its offset; None if the judge is set aside."""
        of = label.source, record.called
        if learned:
            one = self.calibration.counted(of, self._stored(record).born)
        else:
            one = self.calibration.begun(of, self.arms, self.offset)
        if one is None:
            return label.reward
        return None if one.aside and _weight(record) == 1.0 else label.reward - one.offset

    def learned(self, record: RequestRecord, x: Vector, before: Label | None) -> None:
        """See Capability: the labels of judges are summed up by model."""
        stored, label, model, born = self._stored(record), record.label, record.called, None
        calibration, weight = self.calibration, _weight(record)
        if before is not None and calibration.counted((before.source, model), stored.born):
            of = before.source, model
            calibration.count(of, self.arms, x, before, weight=weight, times=-1.0)
        if label is not None:
            of = label.source, model
            if one := calibration.begun(of, self.arms, self.offset):
                calibration.count(of, self.arms, x, label, weight=weight, times=1.0)
                born = one.born
        if born != stored.born:
            self._store(record, structs.replace(stored, born=born))

    def shifted(self, model: str, offset: float) -> None:
        """See Capability."""
        self.calibration.shift(model, offset)

    def without(self, model: str) -> None:
        """See Capability."""
        self.pairs.drop(lambda _, one: one == model)
        self.calibration.without(model, self.arms)

    def start_over(self) -> None:
        """See Capability. The judges' pairs stay; none of the new router's own requests is counted
        yet."""
        self.pairs.start_over()
        for labels in self.calibration.labels.values():
            labels.born = NO_CELL

    # Its state.

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return (*self.pairs.pieces, *self.calibration.pieces)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece.startswith(LABELS):
            labels = self.calibration.labels.get(pieced(piece))
            return None if labels is None else labels.pack()
        return self.pairs.pack(piece)

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if self.declared.gold is None:
            return
        sources, models = (self.declared.gold, *self.declared.judges), (*self.arms.names, ITSELF)
        cells = list(product(sources, models))
        self.pairs.restore(cells, piece)
        for cell in cells:
            if body := piece(piece_of(cell)):
                self.calibration.labels[cell] = LearnedLabels.unpack(body, self.arms.d)

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not all(cell.is_sound for cell in self.pairs.cells.values()):
            yield "pairs of sources"
        yield from self.calibration.faults(self.arms)

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability; `schemas.label_sources` has its fields."""
        if self.declared.gold is None:
            return {}
        return {"sources": standings(self.declared, self.pairs.cells, self.calibration.labels)}


def _weight(record: RequestRecord) -> float:
    """Return what a label weighs beside the verdicts on its answer."""
    return 1.0 if record.plan is None else record.plan.revised
