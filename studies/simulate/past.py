"""Open a study's further inputs: contexts of prompts, and referenced priors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from router_state.config import ProjectionRef
from streams.encoder.encoder_by_settings import encoder_of, projections_of
from streams.encoder.projections import Encoders
from streams.priors.references import blocking_prior_reader
from streams.settings import Settings
from studies.history.encoded import Contexts, Encode
from studies.history.happened import Happened
from studies.history.merge import Merge
from studies.history.records import History, partitions_of, refused_offsets
from studies.history.rerun import ReadPrior
from studies.history.skipped import Skipped


def happened(history: History, router_id: str | None, skipped: Skipped) -> Iterator[Happened]:
    """Yield the events of a router, or of all; `skipped` counts skipped records."""
    refused = refused_offsets(history)
    for partition in partitions_of(history, router_id):
        yield from Merge(history, partition, refused=refused, skipped=skipped, router_id=router_id)


def contexts_of(settings: Settings, *, progress: Callable[[int], None] | None = None) -> Contexts:
    """Return the contexts of prompts as a worker with these settings makes them. The caller closes
    them.
    """

    # Loaded with the first prompt: a history of contexts needs no encoder, nor its memory.
    @cache
    def encoders() -> Encoders:
        others = projections_of(settings)[1:]
        return Encoders(encoder_of(settings), settings.priors_path, others=others)

    def open_encoder(projection: ProjectionRef | int) -> tuple[str, Encode]:
        encoder = encoders().of(projection)
        return encoder.identity, encoder.encode

    return Contexts(open_encoder, progress=progress)


def prior_reader_of(settings: Settings) -> ReadPrior:
    """Return the function that reads a referenced prior."""
    return blocking_prior_reader(settings.priors_path)
