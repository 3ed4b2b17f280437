"""Say which labels of a request count, where its router declares sources of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.source_labels import Labels, SourceLabel, in_force, with_label
from schemas import LambdaUpdated, RewardObserved
from schemas.label_sources import Sources

REPEATED = " (changed nothing: this or a higher revision came before)"
"""Note of a label that says nothing new."""


def label_notes(
    events: Sequence[RewardObserved], rank_of: Callable[[str], int], declared: Sources
) -> tuple[list[str], str]:
    """Return a note for each label, and a sentence about the reward that counts now. A label that
    counts or counted has an empty note. The sentence is empty where a single label explains the
    reward.

    Args:
        events: labels of one request, the oldest first; rank_of: rank of a source by the settings.
    """
    sources = DeclaredSources(declared.gold, declared.judges)
    labels: Labels = {}
    notes = []
    for event in events:
        source = event.source or ""
        rank = sources.rank_of(source, rank_of(source))
        after = with_label(labels, source, SourceLabel(event.reward, rank, event.revision))
        labels = labels if after is None else after
        counts = in_force(labels, sources)
        if after is None:
            notes.append(REPEATED)
        elif event.reward is None or counts is None or counts.source == source:
            notes.append("")
        else:
            both = sources.is_gold(source) and sources.is_gold(counts.source)
            notes.append("" if both else f" (kept: that by {counts.source} counts)")
    return notes, _mean(labels, sources)


def calibration_lines(
    events: Sequence[RewardObserved], model: str, state: LambdaUpdated
) -> list[str]:
    """Return lines on the present calibration of the judges that labelled a model's answer."""
    said = {event.source for event in events if event.reward is not None}
    found = []
    for judge in state.sources or ():
        if judge.source not in said:
            continue
        if judge.set_aside:
            found.append(
                f"{judge.source} says nothing of an answer, and its labels are not learned"
            )
            continue
        for measured in judge.models or ():
            if measured.model == model and measured.taken_off:
                less = "less" if measured.taken_off > 0.0 else "more"
                found.append(
                    f"a label by {judge.source} of {model} is learned as "
                    f"{abs(measured.taken_off):.2g} {less}, by its pairs with gold"
                )
    return found


def _mean(labels: Labels, sources: DeclaredSources) -> str:
    said = [
        one.reward
        for source, one in labels.items()
        if sources.is_gold(source) and one.reward is not None
    ]
    found = in_force(labels, sources)
    if len(said) < 2 or found is None:
        return ""
    apart = max(said) - min(said)
    return (
        f"{len(said)} people: their mean of {found.reward:.3g} counts, they part by up to {apart:g}"
    )
