"""Turn prompts into contexts: a sentence encoder followed by a projection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ground.files.array_folder import Array
from streams.encoder.encoder_errors import EncoderError, UnusablePrompt
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Progress, Reading, SentenceEncoder


class Encoder:
    """A sentence encoder with a projection that fits it."""

    def __init__(self, sentences: SentenceEncoder, projection: Projection | None = None) -> None:
        """Compose the two; without a projection the embedding and a 1.0 are the context.

        Raises:
            EncoderError: the projection takes embeddings of another width, or of another encoder.
        """
        self._sentences = sentences
        self._projection = (
            projection if projection is not None else Projection.identity(sentences.width)
        )
        if self._projection.embedding_width != sentences.width:
            raise EncoderError(
                f"the projection takes embeddings of width {self._projection.embedding_width}, "
                f"the encoder makes {sentences.width}; fit the projection with this encoder"
            )
        if self._projection.source not in {None, sentences.source}:
            raise EncoderError(
                f"the projection was fitted with another encoder ({self._projection.source}, here "
                f"{sentences.source}): set PB_ENCODER_BACKEND, PB_ENCODER_PATH and "
                "PB_ENCODER_WEIGHTS as `pbstream fit` said"
            )

    def projected(self, projection: Projection) -> Encoder:
        """Return the same sentence encoder with another projection; errors as of `Encoder`."""
        return Encoder(self._sentences, projection)

    @property
    def dimensions(self) -> int:
        """The length d of the contexts, the last entry 1.0 included."""
        return self._projection.dimensions

    @property
    def identity(self) -> str:
        """A name of this encoder and its projection. It changes whenever a prompt's context may
        change.
        """
        return f"{self._sentences.identity}+{self._projection.checksum[:16]}"

    def encode(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Encode prompts into contexts, shape (n, d), float64, last entry 1.0.

        A prompt's context does not depend on the prompts beside it.

        Raises:
            UnusablePrompt: a prompt is empty, blank or no valid Unicode, or its context is not
            finite.
        """
        for position, prompt in enumerate(prompts):
            _check(prompt, position)
        if not prompts:
            return np.empty((0, self.dimensions))
        contexts = self._projection.project(self._sentences.embed(prompts, progress=progress))
        finite = np.isfinite(contexts).all(axis=1)
        if not finite.all():
            raise UnusablePrompt(
                "has a context that is not finite", position=int(np.argmin(finite))
            )
        return contexts

    def reading(self, prompt: str) -> Reading:
        """Return the number of tokens that the encoder reads of a prompt, and of all its tokens."""
        return self._sentences.reading(prompt)


def _check(prompt: str, position: int) -> None:
    if not prompt.strip():
        raise UnusablePrompt("is blank", position=position)
    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnusablePrompt("is not valid Unicode", position=position) from error
