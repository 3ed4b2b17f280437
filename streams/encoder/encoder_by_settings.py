"""Load the encoder that the settings name; a backend's libraries are imported only for it."""

from __future__ import annotations

import os
from pathlib import Path

from streams.encoder.encoder_errors import EncoderError
from streams.encoder.general_projection import general_projection
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Backend, SentenceEncoder
from streams.encoder.static import SHIPPED, StaticEncoder
from streams.encoder.token_table import HEADER_FILE
from streams.encoder.weights import local_model, width_of
from streams.settings import Settings

NETWORK_WIDTH = 384
"""Length of the embeddings of all-MiniLM-L6-v2, which is also assumed for a model that is not
installed here.
"""


def encoder_of(settings: Settings) -> Encoder:
    """Load the encoder and the projection that the settings name; errors as in `load_encoder`."""
    return load_encoder(
        backend=backend_of(settings),
        path=settings.encoder_path,
        weights=settings.encoder_weights,
        projection=settings.projection_path,
        threads=settings.encoder_threads,
    )


def backend_of(settings: Settings) -> Backend:
    """Return which implementation the settings ask for.

    If PB_ENCODER_BACKEND is not set, the backend follows from the other settings. An exported
    network or weights need `onnx`. So does a projection for embeddings of another length than those
    of the shipped table.

    Raises:
        EncoderError: PB_ENCODER_BACKEND=none.
        UnusableArrays: the projection is missing or damaged.
    """
    named = settings.encoder_backend
    if named == "none":
        raise EncoderError("there is no encoder (PB_ENCODER_BACKEND=none)")
    if named is not None:
        return named
    if settings.encoder_path is not None and (settings.encoder_path / HEADER_FILE).is_file():
        return "static"
    if settings.encoder_path is not None or settings.encoder_weights is not None:
        return "onnx"
    projection = settings.projection_path
    fits = (
        projection is None
        or Projection.load(projection).embedding_width == Projection.load(SHIPPED).embedding_width
    )
    return "static" if fits else "onnx"


def projections_of(settings: Settings) -> tuple[Projection, ...]:
    """Return the projections of routers that declare none, without loading the encoder. Each
    serves the routers with its number of dimensions; the first one serves new routers.

    Without PB_PROJECTION_PATH an encoder that is a neural network has two projections: the general
    one, if there is one for its model, and the embedding itself.

    Raises:
        EncoderError, UnusableArrays: as in `backend_of`.
    """
    return _projections(
        backend_of(settings),
        path=settings.encoder_path,
        weights=settings.encoder_weights,
        projection=settings.projection_path,
    )


def projection_of(settings: Settings) -> Projection:
    """Return the projection of new routers that declare none; errors as in `projections_of`."""
    return projections_of(settings)[0]


def dimensions_of(settings: Settings) -> int:
    """Return the dimensions of a new router's contexts with the settings' encoder; errors as in
    `projections_of`.
    """
    return projection_of(settings).dimensions


def sentences_of(settings: Settings) -> SentenceEncoder:
    """Load the settings' encoder on all CPU threads, without a projection; errors as in
    `load_encoder`.
    """
    return load_sentences(
        backend=backend_of(settings), path=settings.encoder_path, weights=settings.encoder_weights
    )


def load_encoder(
    *,
    backend: Backend = "static",
    path: Path | None = None,
    weights: str | None = None,
    projection: Path | None = None,
    threads: int | None = None,
) -> Encoder:
    """Load an encoder and its projection.

    Args:
        backend: "static", a table of token vectors; "onnx", int8 on ONNX Runtime;
            "sentence-transformers", any model of that library.
        path: a folder that `distill` (static) or `export_encoder` (onnx) wrote; None: the table
            that is shipped, or the cached export, made if it is missing.
        weights: a model of sentence-transformers: a folder, an installed package or a name on the
            hub; None: all-MiniLM-L6-v2. Not for "static".
        projection: a folder with a saved `Projection`; None: the general one of the table or of
            all-MiniLM-L6-v2, for other networks the identity.
        threads: CPU threads; None: all. "static" takes one.

    Raises:
        EncoderError: what the encoder needs is missing, or does not fit the projection; the message
        says what to do.
        UnusableArrays: the projection is missing or damaged.
    """
    sentences = load_sentences(backend=backend, path=path, weights=weights, threads=threads)
    first = _projections(backend, path=path, weights=weights, projection=projection)[0]
    # The width of other networks is known once they are loaded.
    unfitted = projection is None and first.components is None
    return Encoder(sentences, None if unfitted else first)


def load_sentences(
    *,
    backend: Backend = "static",
    path: Path | None = None,
    weights: str | None = None,
    threads: int | None = None,
) -> SentenceEncoder:
    """Load the sentence encoder alone; arguments and errors as in `load_encoder`."""
    if backend == "static":
        return StaticEncoder(path or SHIPPED)
    threads = threads or os.cpu_count() or 1
    if backend == "sentence-transformers":
        from streams.encoder.transformer import TransformerEncoder

        return TransformerEncoder(weights, threads=threads)
    from streams.encoder.cache import exported_folder
    from streams.encoder.onnx import OnnxEncoder

    return OnnxEncoder(exported_folder(weights) if path is None else path, threads=threads)


def _projections(
    backend: Backend, *, path: Path | None, weights: str | None, projection: Path | None
) -> tuple[Projection, ...]:
    if projection is not None:
        return (Projection.load(projection),)
    if backend == "static":
        return (Projection.load(path or SHIPPED),)
    general = general_projection(weights=weights, exported=path if backend == "onnx" else None)
    folder = None if weights is None else local_model(weights)
    whole = Projection.identity(
        NETWORK_WIDTH if folder is None else width_of(folder) or NETWORK_WIDTH
    )
    return (whole,) if general is None else (general, whole)
