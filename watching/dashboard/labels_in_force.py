"""Find the label of a request that counts, by the core's own rule."""

from __future__ import annotations

from msgspec import structs

from router_state.sources.declared_sources import DeclaredSources
from router_state.sources.source_labels import SourceLabel, in_force, with_label
from schemas.label_sources import Sources
from watching.joined import Request


def sources_of(declared: Sources | None) -> DeclaredSources:
    """Return the sources of a declaration, as the core has them."""
    return (
        DeclaredSources() if declared is None else DeclaredSources(declared.gold, declared.judges)
    )


def take_label(
    request: Request, source: str, label: SourceLabel, declared: DeclaredSources
) -> tuple[bool, float | None, int]:
    """Keep a label of a request; return whether the label says anything new, the reward that counts
    from now on, and the number of its call. None: no reward counts.
    """
    if declared.gold is None and label.reward is not None and not request.labels:
        if not _is_news(request, source, label):
            return False, request.label, label.attempt
        request.label_source, request.label_rank = source, (label.rank, label.revision)
        return True, label.reward, label.attempt
    labels = with_label(
        request.labels or _only(request, declared), source, _ranked(source, label, declared)
    )
    if labels is None:
        return False, request.label, label.attempt
    request.labels, found = labels, in_force(labels, declared)
    if found is None:
        return True, None, label.attempt
    return True, found.reward, labels[found.source].attempt


def _is_news(request: Request, source: str, label: SourceLabel) -> bool:
    """Tell whether a label is of a higher rank, or of a higher revision of the same source."""
    if request.label is None:
        return True
    rank, revision = request.label_rank
    return label.rank > rank or (source == request.label_source and label.revision > revision)


def _only(request: Request, declared: DeclaredSources) -> dict[str, SourceLabel]:
    """Return the label of a request that keeps no others."""
    if request.label is None:
        return {}
    rank, revision = request.label_rank
    number = 0 if request.plan is None else request.plan.labelled
    label = SourceLabel(request.label, rank, revision, attempt=number)
    return {request.label_source: _ranked(request.label_source, label, declared)}


def _ranked(source: str, label: SourceLabel, declared: DeclaredSources) -> SourceLabel:
    return structs.replace(label, rank=declared.rank_of(source, label.rank))
