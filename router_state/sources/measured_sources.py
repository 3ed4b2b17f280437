"""The capability of sources: all labels of a request are kept, and judges are measured by gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import orjson
from msgspec import Struct, structs, to_builtins

from router_state.arms import Arms
from router_state.capability import Capability
from router_state.changes import Journal
from router_state.config import Vector
from router_state.events import Judged
from router_state.packing.framing import Json, converted, decoded
from router_state.record import PLAIN, Label, RequestRecord, Weighed
from router_state.sources.calibration import Calibration
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.kept_labels import KeptLabel, Labels, in_force, with_label
from router_state.sources.label_pairs import ITSELF, Pair, pairs_of
from router_state.sources.learned_labels import PIECE as LABELS
from router_state.sources.learned_labels import LearnedLabels, piece_of, pieced
from router_state.sources.parting import FALSE_A_YEAR, Cell
from router_state.sources.source_standing import standings
from router_state.wanted import wanted_of

PIECE = "\x1fsource:"
"""Prefix of the names of pieces; the source and the model follow, \\x1f between them."""
NO_CELL = -2
"""`born` of cells that a router went on from: none of its own pairs is counted by that number."""


class SaidSources(Protocol):
    """Sources as they are declared."""

    gold: str
    judges: tuple[str, ...]

    @property
    def calibrate(self) -> dict[str, str] | None: ...


class Said(Protocol):
    """A router's declaration."""

    @property
    def sources(self) -> SaidSources | None: ...


class Kept(Struct, omit_defaults=True):
    """What a record keeps of its labels: the labels by source, and the pairs as they were counted.
    `born` numbers the sum of learned labels in which the label in force is counted; None: it is in
    none.
    """

    labels: Labels = {}
    pairs: list[Pair] = []
    born: int | None = None


class MeasuredSources(Capability):
    """The sources of a router's labels. A router that declares no sources gets the capability with
    its first withdrawn label: the labels of that request are kept, so that an older one does not
    come back.

    Attributes:
        declared: the router's declaration of its sources.
        cells: pairs by source and model, see `label_pairs.ITSELF`.
        calibration: the judges' labels as models have learned them.
    """

    __slots__ = ("calibration", "cells", "declared")
    name = "sources"
    undeclared = True

    def __init__(self, arms: Arms, journal: Journal) -> None:
        super().__init__(arms, journal)
        self.declared = DeclaredSources()
        self.cells: dict[tuple[str, str], Cell] = {}
        self.calibration = Calibration(journal, self.cells)

    @classmethod
    def read(cls, said: Said) -> DeclaredSources | None:
        """See Capability."""
        sources = said.sources
        if sources is None:
            return None
        return DeclaredSources(sources.gold, sources.judges, sources.calibrate or {})

    @classmethod
    def document(cls, declared: DeclaredSources) -> dict[str, object]:
        """See Capability."""
        return {"sources": to_builtins(declared)}

    @classmethod
    def pack_declared(cls, declared: DeclaredSources | None) -> Json | None:
        """See Capability."""
        return None if declared is None else to_builtins(declared)

    @classmethod
    def unpack_declared(cls, kept: Json | None) -> DeclaredSources | None:
        """See Capability."""
        return None if kept is None else converted(kept, DeclaredSources, "sources")

    def declare(self, declared: DeclaredSources | None, *, now: float) -> None:
        """See Capability; what is known of a source that is declared no more is forgotten."""
        before, self.declared = self.declared, declared or DeclaredSources()
        kept = set(self.declared.judges)
        # By another gold the judges are measured anew.
        if before.gold == self.declared.gold and before.gold is not None:
            kept.add(before.gold)
        elif before.gold is not None:
            kept.clear()
        self._drop(lambda source, model: source not in kept)
        self.calibration.declare(self.declared, self.arms)

    def _drop(self, gone: Callable[[str, str], bool]) -> None:
        for cell in [cell for cell in self.cells if gone(*cell)]:
            del self.cells[cell]
            self.journal.pieces.add(_piece(cell))

    # A label.

    def weighed(self, record: RequestRecord, event: Judged) -> Weighed | None:
        """See Capability; without declared sources, and before a withdrawal, ranks decide."""
        kept = self._kept(record)
        if self.declared.gold is None and event.reward is not None and not kept.labels:
            return None
        before = kept.labels or self._only(record)
        rank = self.declared.rank_of(event.source, event.rank)
        plan, attempt = record.plan, event.attempt
        if attempt is None:
            attempt = 0 if plan is None else plan.last
        said = KeptLabel(event.reward, rank, event.revision, attempt=attempt)
        labels = with_label(before, event.source, said)
        if labels is None:
            return Weighed(record.label, news=False)
        found, label = in_force(labels, self.declared), record.label
        # The one that was learned knows what is left of it.
        if found is not None and label is not None and found.is_as(label):
            found = label
        return Weighed(found, kept=labels)

    def _only(self, record: RequestRecord) -> Labels:
        """Return the label of a request that keeps no others."""
        label = record.label
        if label is None:
            return {}
        rank = self.declared.rank_of(label.source, label.rank)
        attempt = 0 if record.plan is None else max(record.plan.labelled, 0)
        return {label.source: KeptLabel(label.reward, rank, label.revision, attempt=attempt)}

    def taken(self, record: RequestRecord, event: Judged, said: object, now: float) -> None:
        """See Capability: keep the labels, count their pairs, and tell of a judge that parts."""
        if not isinstance(said, dict):
            return
        labels: Labels = said
        judges = self.declared.judges
        model = None if self.arms.find(record.called) is None else record.called
        if record.plan is not None:  # only what was said of the attempt that the label is of
            labels = {
                name: one for name, one in labels.items() if one.attempt == record.plan.labelled
            }
        wanted = pairs_of(labels, self.declared, model)
        asked = wanted_of(record)
        if asked is not None and not asked.drawn:
            # Who labels what nobody asked for chose it: that measures no judge.
            wanted = [one for one in wanted if one.model == ITSELF and one.source in judges]
        kept = self._kept(record)
        before = kept.pairs
        pairs = self._counted(before, wanted, now)
        self._keep(record, structs.replace(kept, labels=said, pairs=pairs))
        for judge in dict.fromkeys(pair.source for pair in (*before, *pairs)):
            if judge in judges:
                self.calibration.follow(judge, self.arms)

    def _kept(self, record: RequestRecord) -> Kept:
        call = record.call
        kept = None if call is None else call.kept.get(self.name)
        return Kept() if kept is None else converted(kept, Kept, "labels of a request")

    def _keep(self, record: RequestRecord, kept: Kept) -> None:
        call = record.call or PLAIN
        record.call = structs.replace(call, kept={**call.kept, self.name: to_builtins(kept)})

    # What models learn of it.

    def worth(self, record: RequestRecord, label: Label, learned: bool) -> float | None:
        """See Capability: without the judge's offset, and nothing where the judge says nothing."""
        of = label.source, record.called
        if learned:
            one = self.calibration.counted(of, self._kept(record).born)
        else:
            one = self.calibration.begun(of, self.arms, self.offset)
        if one is None:
            return label.reward
        return None if one.aside and _weight(record) == 1.0 else label.reward - one.offset

    def learned(self, record: RequestRecord, x: Vector, before: Label | None) -> None:
        """See Capability: the labels of judges are summed up by model."""
        kept, label, model, born = self._kept(record), record.label, record.called, None
        calibration, weight = self.calibration, _weight(record)
        if before is not None and calibration.counted((before.source, model), kept.born):
            of = before.source, model
            calibration.count(of, self.arms, x, before, weight=weight, times=-1.0)
        if label is not None:
            of = label.source, model
            if one := calibration.begun(of, self.arms, self.offset):
                calibration.count(of, self.arms, x, label, weight=weight, times=1.0)
                born = one.born
        if born != kept.born:
            self._keep(record, structs.replace(kept, born=born))

    def shifted(self, model: str, offset: float) -> None:
        """See Capability."""
        self.calibration.shift(model, offset)

    # Pairs.

    def _counted(self, before: list[Pair], wanted: list[Pair], now: float) -> list[Pair]:
        """Take back the pairs that are no more, add the new ones, and return them all with their
        places."""
        stay: list[Pair] = []
        for pair in before:
            same = structs.replace(pair, block=0, born=0)
            if same in wanted:
                wanted.remove(same)
                stay.append(pair)
            else:
                self._take_back(pair)
        return stay + [self._add(pair, now) for pair in wanted]

    def _take_back(self, pair: Pair) -> None:
        cell = self.cells.get(pair.cell)
        if cell is not None and cell.born == pair.born:
            cell.take_back(pair.y, pair.r, pair.block)
            self.journal.pieces.add(_piece(pair.cell))

    def _add(self, pair: Pair, now: float) -> Pair:
        cell = self.cells.get(pair.cell)
        if cell is None:
            cell = self.cells[pair.cell] = Cell.empty(self.offset)
        block = cell.add(pair.y, pair.r, now)
        self.journal.pieces.add(_piece(pair.cell))
        if pair.source in self.declared.judges:
            self._tell(pair, cell, now)
        return structs.replace(pair, block=block, born=cell.born)

    def _tell(self, pair: Pair, cell: Cell, now: float) -> None:
        """Raise an alert where a judge has parted from gold, or from its earlier answers."""
        cells = len(self.declared.judges) * (len(self.arms) + 1)
        offset = cell.parted(FALSE_A_YEAR / cells)
        if offset is None:
            return
        itself = pair.model == ITSELF
        evidence = {
            "source": pair.source,
            "from": "its earlier answers" if itself else self.declared.gold,
            "low": offset.low,
            "high": offset.high,
            "pairs": cell.all.n,
        }
        self.journal.tell(
            "source_parted",
            abs(offset.value),
            evidence,
            now=now,
            direction="up" if offset.value > 0.0 else "down",
            model=None if itself else pair.model,
            signal="reward",
        )

    def without(self, model: str) -> None:
        """See Capability."""
        self._drop(lambda _, one: one == model)
        self.calibration.without(model, self.arms)

    def start_over(self) -> None:
        """See Capability; the judges are known, and no request of this router is counted yet."""
        for cell in self.cells.values():
            cell.born = NO_CELL
        for labels in self.calibration.labels.values():
            labels.born = NO_CELL

    # Its state.

    @property
    def pieces(self) -> tuple[str, ...]:
        """See Capability."""
        return (*map(_piece, self.cells), *self.calibration.pieces)

    def pack(self, piece: str) -> bytes | None:
        """See Capability."""
        if piece.startswith(LABELS):
            labels = self.calibration.labels.get(pieced(piece))
            return None if labels is None else labels.pack()
        source, _, model = piece.removeprefix(PIECE).partition("\x1f")
        found = self.cells.get((source, model)) if piece.startswith(PIECE) else None
        return None if found is None else orjson.dumps(to_builtins(found))

    def restore(self, head: Mapping[str, Json], piece: Callable[[str], bytes]) -> None:
        """See Capability."""
        if self.declared.gold is None:
            return
        for source in (self.declared.gold, *self.declared.judges):
            for model in (*self.arms.names, ITSELF):
                if body := piece(_piece((source, model))):
                    self.cells[source, model] = decoded(body, Cell, "pairs of a source")
                if body := piece(piece_of((source, model))):
                    labels = LearnedLabels.unpack(body, self.arms.d)
                    self.calibration.labels[source, model] = labels

    def faults(self) -> Iterator[str]:
        """See Capability."""
        if not all(cell.is_sound for cell in self.cells.values()):
            yield "pairs of sources"
        yield from self.calibration.faults(self.arms)

    def lambda_fields(self, now: float) -> dict[str, object]:
        """See Capability; `schemas.label_sources` has its fields."""
        if self.declared.gold is None:
            return {}
        return {"sources": standings(self.declared, self.cells, self.calibration.labels)}


def _weight(record: RequestRecord) -> float:
    """Return what a label weighs beside the verdicts on its answer."""
    return 1.0 if record.plan is None else record.plan.revised


def _piece(cell: tuple[str, str]) -> str:
    return PIECE + "\x1f".join(cell)
