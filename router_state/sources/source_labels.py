"""Keep the labels of one request, one for each source, and find the label that is in force."""

from __future__ import annotations

from msgspec import Struct, structs

from router_state.record import Label
from router_state.sources.declared_sources import DeclaredSources

MOST_LABELS = 32
"""Most sources whose labels one request keeps; a record has to stay small."""


class SourceLabel(Struct, array_like=True, gc=False, frozen=True, omit_defaults=True):
    """The last label of a source; `reward` None: it was withdrawn. `first` is the source's first
    label of the answer, if the source has given another one since; a withdrawal forgets it.
    `attempt` is the call whose answer was labelled.
    """

    reward: float | None
    rank: int
    revision: int
    first: float | None = None
    attempt: int = 0


Labels = dict[str, SourceLabel]
"""Labels of a request by their sources, in the order in which these came."""


def with_label(labels: Labels, source: str, label: SourceLabel) -> Labels | None:
    """Return the labels with a new one added. None: the source has a label of the same or a higher
    revision, or there are too many sources.
    """
    before = labels.get(source)
    if before is None and len(labels) >= MOST_LABELS:
        return None
    if before is not None and label.revision <= before.revision:
        return None
    if before is not None and before.reward is not None and label.reward is not None:
        first = before.reward if before.first is None else before.first
        label = structs.replace(label, first=first)
    return {**labels, source: label}


def in_force(labels: Labels, declared: DeclaredSources) -> Label | None:
    """Return the label that counts: the mean of all gold labels; without gold, the first label of
    the highest rank. None: all labels were withdrawn."""
    valid = {name: one for name, one in labels.items() if one.reward is not None}
    if not valid:
        return None
    gold = [name for name in valid if declared.is_gold(name)]
    first = gold[0] if gold else max(valid, key=lambda name: valid[name].rank)
    rewards = [valid[name].reward or 0.0 for name in gold or [first]]
    # Of one label not the mean, which may differ in the last digit.
    reward = rewards[0] if len(rewards) == 1 else sum(rewards) / len(rewards)
    return Label(reward, first, valid[first].rank, valid[first].revision)
