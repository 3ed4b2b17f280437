"""Choose an encoder by a text, `KIND:NAME`, and name the settings that give it to a worker."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from streams.encoder.encoder_errors import EncoderError
from streams.encoder.sentence_encoder import Backend
from streams.settings import Settings


def choose_encoder(settings: Settings, named: str) -> Settings:
    """Return settings with another encoder.

    Args:
        named: `static`, `static:FOLDER` of a table, `onnx`, `onnx:FOLDER` of an export, or
            `sentence-transformers:NAME`, a folder, an installed package or a name on the hub.

    Raises:
        EncoderError: there is no such kind.

    >>> variables_of(choose_encoder(Settings(), "sentence-transformers:BAAI/bge-small-en-v1.5"))
    {'PB_ENCODER_BACKEND': 'sentence-transformers', 'PB_ENCODER_WEIGHTS': 'BAAI/bge-small-en-v1.5'}
    """
    kind, _, name = named.partition(":")
    if kind not in get_args(Backend):
        kinds = ", ".join(get_args(Backend))
        raise EncoderError(
            f"there is no encoder {kind!r}: give {kinds}, and its model after a colon, as in "
            "sentence-transformers:all-MiniLM-L6-v2"
        )
    path = weights = None
    if name and kind == "sentence-transformers":
        # Made absolute, as workers may run in another folder.
        weights = str(Path(name).absolute()) if Path(name).is_dir() else name
    elif name:
        path = Path(name).absolute()
    changed = {"encoder_backend": kind, "encoder_path": path, "encoder_weights": weights}
    # Reset, as another encoder needs its own projection.
    return settings.model_copy(update={**changed, "projection_path": None})


def variables_of(settings: Settings) -> dict[str, str]:
    """Return the environment variables that give a worker the encoder of these settings."""
    told = {
        "PB_ENCODER_BACKEND": settings.encoder_backend,
        "PB_ENCODER_PATH": settings.encoder_path,
        "PB_ENCODER_WEIGHTS": settings.encoder_weights,
    }
    return {name: str(value) for name, value in told.items() if value is not None}
