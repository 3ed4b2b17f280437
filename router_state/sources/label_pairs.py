"""Find the pairs that follow from the labels of one request."""

from __future__ import annotations

from itertools import combinations

from msgspec import Struct

from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.pair_sums import PARTS
from router_state.sources.source_labels import Labels, in_force

ITSELF = ""
"""Stands in place of a model where a source is compared with itself: a judge's label with its first
label of the same answer, or one person's label with another's."""


class Pair(Struct, array_like=True, gc=False, frozen=True):
    """One pair, with labels in parts (`PARTS`); `block` and `born` say where the pair was counted,
    see `Cell`.
    """

    source: str
    model: str
    y: int
    r: int
    block: int = 0
    born: int = 0

    @property
    def cell(self) -> tuple[str, str]:
        """The source and the model of the pair."""
        return self.source, self.model


def pairs_of(labels: Labels, declared: DeclaredSources, model: str | None) -> list[Pair]:
    """Return the pairs that the labels of a request form: a judge's label with gold, a judge's
    label with its own first one, and the labels of two people.

    Args:
        model: the model that answered; None: that model is not in the portfolio.
    """
    valid = {name: one for name, one in labels.items() if one.reward is not None}
    gold = {name: one for name, one in valid.items() if declared.is_gold(name)}
    found: list[Pair] = []
    counts = in_force(gold, declared)
    for judge in declared.judges:
        one = valid.get(judge)
        if one is None:
            continue
        if counts is not None and model is not None:
            found.append(Pair(judge, model, _parts(one.reward), _parts(counts.reward)))
        if one.first is not None:
            found.append(Pair(judge, ITSELF, _parts(one.reward), _parts(one.first)))
    people = [_parts(one.reward) for one in gold.values()]
    if declared.gold is not None:
        found += [Pair(declared.gold, ITSELF, a, b) for a, b in combinations(people, 2)]
    return found


def _parts(reward: float | None) -> int:
    return round((reward or 0.0) * PARTS)
