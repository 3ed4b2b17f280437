"""The reference: sentence-transformers itself, on torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ground import extras
from ground.files.array_folder import Array
from streams.encoder.errors import EncoderError
from streams.encoder.excerpt import Excerpts
from streams.encoder.sentences import Progress, Reading
from streams.encoder.weights import MAX_TOKENS, find_weights, hash_weights

_BATCH = 64
"""Most prompts of like length that go through the network together."""


class ReferenceEncoder:
    """Embeds by sentence-transformers (extra `reference`), in batches sorted by length."""

    def __init__(self, weights: str | None = None, *, threads: int) -> None:
        """Load the weights.

        Raises:
            EncoderError: sentence-transformers or the weights are not installed.
        """
        folder = find_weights(weights)
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as absent:
            raise EncoderError(
                "the reference encoder needs torch and sentence-transformers: "
                f"{extras.command('reference')}"
            ) from absent
        disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.set_num_threads(threads)
        self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self.identity = f"reference-{hash_weights(folder)[:16]}-ends"
        self._excerpts = Excerpts(
            folder / "tokenizer.json", max_tokens=int(self._model.max_seq_length or MAX_TOKENS)
        )
        self.width = int(self._model.encode(["."], show_progress_bar=False).shape[1])

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Embed prompts, shape (n, e), rows of length 1."""
        parts = []
        by_length = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        for start in range(0, len(prompts), _BATCH):
            texts = [
                self._excerpts.of(prompts[index]) for index in by_length[start : start + _BATCH]
            ]
            parts.append(
                self._model.encode(
                    texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
                )
            )
            if progress is not None:
                progress(len(texts))
        embeddings = np.empty((len(prompts), self.width))
        if parts:
            embeddings[by_length] = np.concatenate(parts)
        return embeddings

    def reading(self, prompt: str) -> Reading:
        """Say how much of a prompt is read."""
        return self._excerpts.reading(prompt)
