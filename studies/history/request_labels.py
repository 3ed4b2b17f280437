"""The labels of one request as the topic holds them, and the label that must be in force.

The core's rule is written a second time here, so that one checks the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from router_state.engine import Engine
from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.measured_sources import MeasuredSources
from router_state.sources.source_labels import MOST_LABELS

UNDECLARED = DeclaredSources()
"""The sources of a router that declares none."""


class LabelInForce(NamedTuple):
    """The reward that counts."""

    reward: float
    source: str
    rank: int
    revision: int


class SourceLabel(NamedTuple):
    """The last label of a source; `reward` None: it was withdrawn."""

    reward: float | None
    rank: int
    revision: int


def sources_of(engine: Engine | None) -> DeclaredSources:
    """Return the sources that a router declares."""
    found = None if engine is None else engine.state.having(MeasuredSources)
    return UNDECLARED if found is None else found.declared


@dataclass(slots=True)
class RequestLabels:
    """The labels of a request.

    Attributes:
        by_source: the last label of each source. If the router declares no sources, only the label
            that counts is kept, until one is withdrawn.
        all: whether the labels of all sources are kept.
    """

    by_source: dict[str, SourceLabel] = field(default_factory=dict)
    all: bool = False

    def take(self, source: str, label: SourceLabel, declared: DeclaredSources) -> None:
        """Take a label; one of the same or a lower revision changes nothing."""
        before = self.by_source.get(source)
        if before is not None and label.revision <= before.revision:
            return
        if declared.gold is None and label.reward is not None and not self.all:
            # Revision decides within a source, rank between sources.
            counts = next(iter(self.by_source.values()), None)
            if counts is None or before is not None or label.rank > counts.rank:
                self.by_source = {source: label}
            return
        self.all = True
        if before is not None or len(self.by_source) < MOST_LABELS:
            self.by_source[source] = label._replace(rank=declared.rank_of(source, label.rank))

    def in_force(self, declared: DeclaredSources) -> LabelInForce | None:
        """Return the label that counts; None: all were withdrawn."""
        left = [
            LabelInForce(one.reward, source, one.rank, one.revision)
            for source, one in self.by_source.items()
            if one.reward is not None
        ]
        if not left:
            return None
        gold = [one for one in left if declared.is_gold(one.source)]
        if len(gold) > 1:
            return gold[0]._replace(reward=sum(one.reward for one in gold) / len(gold))
        return gold[0] if gold else max(left, key=lambda one: one.rank)
