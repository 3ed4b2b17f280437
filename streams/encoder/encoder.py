"""Prompts in, contexts out: a sentence encoder followed by a projection."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from streams.encoder.projection import Projection
from streams.files.array_folder import Array

Progress = Callable[[int], None]
Backend = Literal["onnx", "reference"]


class EncoderError(Exception):
    """The encoder cannot be had, or cannot encode what it was given."""

    reason = "encoder_unavailable"
    retriable = False


class UnusablePrompt(EncoderError):
    """A prompt has nothing to encode, is not valid Unicode, or its context is not finite; `position` says which."""

    reason = "unusable_prompt"

    def __init__(self, problem: str, *, position: int) -> None:
        super().__init__(f"prompt {position} {problem}")
        self.position = position


class SentenceEncoder(Protocol):
    """What turns prompts into unit-length embeddings."""

    @property
    def width(self) -> int:
        """The embeddings' length e."""

    @property
    def identity(self) -> str:
        """A name that changes whenever the embeddings may."""

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Embed prompts, shape (n, e), rows of length 1; `progress` is told how many more are done."""


class Encoder:
    """A sentence encoder and a projection that fit together."""

    def __init__(self, sentences: SentenceEncoder, projection: Projection | None = None) -> None:
        """Compose the two; without a projection the embedding and a 1.0 are the context.

        Raises:
            EncoderError: the projection takes embeddings of another width.
        """
        self._sentences = sentences
        self._projection = projection if projection is not None else Projection.identity(sentences.width)
        if self._projection.embedding_width != sentences.width:
            raise EncoderError(
                f"the projection takes embeddings of width {self._projection.embedding_width}, "
                f"the encoder makes {sentences.width}; fit the projection with this encoder"
            )

    @property
    def dimensions(self) -> int:
        """The length d of the contexts, the last entry 1.0 included."""
        return self._projection.dimensions

    @property
    def identity(self) -> str:
        """A name that changes whenever the contexts may."""
        return f"{self._sentences.identity}+{self._projection.checksum[:16]}"

    def encode(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Encode prompts into contexts, shape (n, d), float64, last entry 1.0.

        A prompt's context does not depend on the prompts beside it. Text after 256 tokens has no influence.

        Raises:
            UnusablePrompt: a prompt is empty, blank or no valid Unicode, or its context is not finite.
        """
        for position, prompt in enumerate(prompts):
            _check(prompt, position)
        if not prompts:
            return np.empty((0, self.dimensions))
        contexts = self._projection.project(self._sentences.embed(prompts, progress=progress))
        finite = np.isfinite(contexts).all(axis=1)
        if not finite.all():
            raise UnusablePrompt("has a context that is not finite", position=int(np.argmin(finite)))
        return contexts


def _check(prompt: str, position: int) -> None:
    if not prompt.strip():
        raise UnusablePrompt("is blank", position=position)
    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnusablePrompt("is not valid Unicode", position=position) from error


def load_encoder(
    *,
    backend: Backend = "onnx",
    path: Path | None = None,
    weights: str | None = None,
    projection: Path | None = None,
    threads: int | None = None,
) -> Encoder:
    """Load an encoder and its projection.

    Args:
        backend: "onnx", int8 on ONNX Runtime, or "reference", sentence-transformers.
        path: an exported folder (`export_encoder`); None: the cached export, made if it is missing.
        weights: a hub name or a local folder of a sentence-transformers model; None: all-MiniLM-L6-v2.
        projection: a folder with a saved `Projection`; None: the identity.
        threads: CPU threads; None: all.

    Raises:
        EncoderError: neither an export nor weights are there; the message says what to install.
        UnusableArrays: the projection is missing or damaged.
    """
    return Encoder(
        load_sentences(backend=backend, path=path, weights=weights, threads=threads),
        None if projection is None else Projection.load(projection),
    )


def load_sentences(
    *, backend: Backend = "onnx", path: Path | None = None, weights: str | None = None, threads: int | None = None
) -> SentenceEncoder:
    """Load the sentence encoder alone; arguments and errors as in `load_encoder`."""
    threads = threads or os.cpu_count() or 1
    if backend == "reference":
        from streams.encoder.reference import ReferenceEncoder

        return ReferenceEncoder(weights, threads=threads)
    from streams.encoder.cache import exported_folder
    from streams.encoder.onnx import OnnxEncoder

    return OnnxEncoder(exported_folder(weights) if path is None else path, threads=threads)
