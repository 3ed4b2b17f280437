"""Make a table of token vectors, and a general projection, from the weights of a sentence encoder;
needs no torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ground import extras
from ground.files.array_folder import Array
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.projection import Projection
from streams.encoder.token_table import write_table
from streams.encoder.weights import DEFAULT_WEIGHTS, find_weights, hash_weights
from streams.encoder.zipf import draw_texts, token_frequencies

# 128 of 384: 64 lose 0.004 of reward at the tightest budgets of the benchmark, 384 gain nothing
# (docs/explanation/encoder.md).
WIDTH = 128
COMPONENTS = 25
"""Most directions that a context keeps; with the constant entry it has 26 dimensions."""
_LARGEST = 127  # int8
# Rounded: the last digits of an eigenvector depend on the CPU, and the files must not.
_DECIMALS = 9
_VECTORS = "embeddings.word_embeddings.weight"
"""The tensor of BERT's word pieces, shape (vocabulary, width)."""
_TEXTS = 8_000
"""Texts that the general projection is fitted on."""


def distill(out_dir: Path, weights: str | None = None) -> Path:
    """Write a table of token vectors and a general projection into `out_dir`; return `out_dir`.

    The vectors are the model's own word embeddings, put onto the principal components of tokens
    weighted by their frequency in text. The mean of a prompt's vectors then shows how the prompt
    differs from average text. The frequencies follow Zipf (1949), as BERT's vocabulary is sorted by
    frequency. The projection is fitted on texts drawn from the same frequencies, so that no text
    has to be shipped.

    Raises:
        EncoderError: the weights are missing, or hold no word embeddings of a BERT.
    """
    folder = find_weights(weights)
    vectors = _read_vectors(folder)
    vocabulary = (folder / "vocab.txt").read_bytes()
    frequencies = token_frequencies(vocabulary.decode("utf-8").splitlines())
    values, scale = _reduce(vectors, frequencies)
    source = {
        "weights": weights or DEFAULT_WEIGHTS,
        "weights_sha256": hash_weights(folder),
        "license": "Apache-2.0" if weights in {None, DEFAULT_WEIGHTS} else "that of the weights",
        "command": "pbstream encoder distill FOLDER",
    }
    write_table(out_dir, values, scale, vocabulary=vocabulary, source=source)
    general_projection(values, scale, frequencies).save(out_dir)
    return out_dir


def general_projection(values: NDArray[np.int8], scale: Array, frequencies: Array) -> Projection:
    """Fit a projection onto 25 components to texts of independent tokens."""
    tokens, starts = draw_texts(frequencies, _TEXTS)
    # Summed in integers, text by text: exact, and all texts' vectors at once would take a gigabyte.
    texts = np.split(tokens, starts[1:])
    means = np.stack([values[text].sum(axis=0, dtype=np.int64) for text in texts]) * scale
    embeddings = means / np.linalg.norm(means, axis=1, keepdims=True)
    fitted, _ = Projection.fit(embeddings, min(COMPONENTS, len(scale)))
    assert fitted.components is not None
    return Projection(
        fitted.mean.round(_DECIMALS),
        fitted.components.round(_DECIMALS),
        fitted.explained_variance.round(_DECIMALS),
    )


def _read_vectors(folder: Path) -> Array:
    try:
        from safetensors import safe_open
    except ImportError as absent:
        raise EncoderError(
            f"distilling needs safetensors: {extras.command('reference')}"
        ) from absent
    file: Any
    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        if _VECTORS not in file.keys():  # noqa: SIM118  # the file is no mapping
            raise EncoderError(f"{folder} has no word embeddings ({_VECTORS})")
        vectors: Array = np.asarray(file.get_tensor(_VECTORS), dtype=np.float64)
        return vectors


def _reduce(vectors: Array, frequencies: Array) -> tuple[NDArray[np.int8], Array]:
    """Return the centred vectors projected onto the first components, in eight bits a value, and
    the step size of each.
    """
    # Weighted, which no library's principal components are. The largest entry of each is positive:
    # the same weights give the same signs everywhere.
    _, directions = np.linalg.eigh(np.cov(vectors.T, aweights=frequencies, ddof=0))
    directions = directions[:, ::-1][:, : min(WIDTH, vectors.shape[1])]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    reduced = (vectors - frequencies @ vectors) @ directions
    scale = (np.abs(reduced).max(axis=0) / _LARGEST).round(_DECIMALS)
    return np.rint(reduced / scale).astype(np.int8), scale
