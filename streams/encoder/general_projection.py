"""A general projection for all-MiniLM-L6-v2, for users who have not fitted one: 26 numbers of a
prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Progress, SentenceEncoder
from streams.encoder.static import SHIPPED
from streams.encoder.to_onnx import MANIFEST_FILE
from streams.encoder.token_table import VOCABULARY_FILE
from streams.encoder.weights import (
    DEFAULT_WEIGHTS,
    find_weights,
    hash_weights,
    is_mean_of_tokens,
    local_model,
    on_hub,
)
from streams.encoder.zipf import draw_texts, token_frequencies

GENERAL = Path(__file__).with_name("minilm_network")
"""The projection that comes with the package."""
SOURCE_FILE = "source.json"
"""File that names the weights, the texts and the command of a general projection."""
COMPONENTS = 25
"""Directions that a context keeps; with the constant entry it has 26 dimensions."""
TEXTS = 1_600
"""Number of texts that the projection is fitted on: four for each of the network's 384
directions.
"""
_PIECE = "##"
"""Prefix of BERT's vocabulary for a piece that continues a word."""


def fit_general(
    sentences: SentenceEncoder,
    folder: Path,
    *,
    source: Mapping[str, object],
    progress: Progress | None = None,
) -> Projection:
    """Fit a projection to texts drawn from the shipped vocabulary by Zipf's law; write it into
    `folder`, in half precision, and return it.

    So no text has to be shipped, and no domain is preferred. Floating-point sums of a network
    depend on the CPU: on another one the last digits differ.

    Args:
        source: origin of the embeddings, stored beside the projection.
    """
    texts = drawn_texts()
    embeddings = sentences.embed(texts, progress=progress)
    fitted, _ = Projection.fit(embeddings, COMPONENTS)
    checksum = fitted.save(folder, precision="<f2")
    told = {**source, "texts": len(texts), "texts_sha256": hash_texts(texts), "checksum": checksum}
    (folder / SOURCE_FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return Projection.load(folder)


def source_of(weights: str | None, exported: Path | None) -> dict[str, object]:
    """Return the source of a network's embeddings; arguments as of `general_projection`.

    Raises:
        EncoderError: the weights are missing.
        OSError, ValueError, KeyError: `exported` is not the folder of an exported network.
    """
    return {
        "weights": weights or DEFAULT_WEIGHTS,
        "weights_sha256": _hash(weights, exported),
        "license": "Apache-2.0" if weights in {None, DEFAULT_WEIGHTS} else "that of the weights",
        "command": "pbstream encoder general FOLDER",
    }


def drawn_texts(count: int = TEXTS) -> list[str]:
    """Return the texts that the projection is fitted on."""
    names = (SHIPPED / VOCABULARY_FILE).read_text(encoding="utf-8").splitlines()
    tokens, starts = draw_texts(token_frequencies(names), count)
    ends = [*starts[1:].tolist(), len(tokens)]
    return [
        _spelled([names[token] for token in tokens[start:end].tolist()])
        for start, end in zip(starts.tolist(), ends, strict=True)
    ]


def hash_texts(texts: list[str]) -> str:
    """Return the SHA-256 of texts, one a line."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def general_projection(*, weights: str | None, exported: Path | None) -> Projection | None:
    """Return the shipped projection; None if it was fitted with another network. A network whose
    weights are not known counts as the same.

    Args:
        weights: a hub name or a local folder; None: all-MiniLM-L6-v2.
        exported: a folder of an int8 encoder, which names its weights; None: `weights` names them.
    """
    fitted_with = json.loads((GENERAL / SOURCE_FILE).read_text(encoding="utf-8"))["weights_sha256"]
    folder = local_model(weights)
    try:
        # Weights by their name need not be here: whoever loads them looks for them.
        if exported is None and on_hub(weights) == DEFAULT_WEIGHTS:
            fits = True
        elif exported is not None:
            fits = _hash(weights, exported) == fitted_with
        else:
            fits = folder is not None and is_mean_of_tokens(folder)
            fits = fits and _hash(weights, None) == fitted_with
    except (OSError, ValueError, KeyError, TypeError):
        # The code that loads the network reports what is wrong with it; a folder that comes later
        # most likely holds the default weights.
        fits = True
    return Projection.load(GENERAL) if fits else None


def _hash(weights: str | None, exported: Path | None) -> str:
    if exported is None:
        return hash_weights(find_weights(weights))
    manifest = json.loads((exported / MANIFEST_FILE).read_text(encoding="utf-8"))
    return str(manifest["weights_sha256"])


def _spelled(pieces: list[str]) -> str:
    return " ".join(pieces).replace(f" {_PIECE}", "").removeprefix(_PIECE)
