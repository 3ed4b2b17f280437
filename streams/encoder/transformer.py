"""Any model of sentence-transformers, on torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ground import extras
from ground.files.array_folder import Array
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.excerpt import Excerpts
from streams.encoder.sentence_encoder import Progress, Reading
from streams.encoder.weights import find_model, hash_model, source_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer


class TransformerEncoder:
    """Embeds each prompt by itself (extra `sentence-transformers`).

    Of a prompt longer than the model's window the beginning and the end are read. A model with a
    default prompt puts it before each text, as it was trained.
    """

    def __init__(self, name: str | None = None, *, threads: int) -> None:
        """Load a model; `name` as in `find_model`.

        Raises:
            EncoderError: sentence-transformers is not installed, or the model cannot be loaded.
        """
        folder = find_model(name)
        self._model = _load(folder, threads)
        self.identity = f"sentence-transformers-{hash_model(folder)[:16]}-ends"
        self.source = source_of(folder)
        self._tokenizer = _fast(self._model.tokenizer)
        window = self._model.max_seq_length
        prompt = (self._model.prompts or {}).get(self._model.default_prompt_name) or ""
        self._excerpts = (
            None
            if self._tokenizer is None
            else Excerpts(
                self._tokenizer,
                max_tokens=sys.maxsize if window is None or window > sys.maxsize else int(window),
                before=prompt,
            )
        )
        self.width = int(self._model.encode(["."], show_progress_bar=False).shape[1])

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Embed prompts, shape (n, e), rows of length 1."""
        embeddings = np.empty((len(prompts), self.width))
        for index, prompt in enumerate(prompts):
            text = prompt if self._excerpts is None else self._excerpts.of(prompt)
            # Alone: in a batch the last digits depend on the prompts beside it, and a replay would
            # find other contexts. On a CPU a batch is hardly faster.
            embeddings[index] = self._model.encode(
                text, normalize_embeddings=True, show_progress_bar=False
            )
            if progress is not None:
                progress(1)
        return embeddings

    def reading(self, prompt: str) -> Reading:
        """Say how much of a prompt is read."""
        if self._excerpts is not None:
            return self._excerpts.reading(prompt)
        tokens = len(self._model.tokenizer.tokenize(prompt))
        return Reading(min(tokens, int(self._model.max_seq_length or tokens)), tokens)


def _load(folder: Path, threads: int) -> SentenceTransformer:
    try:
        import torch
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    except ImportError as absent:
        raise EncoderError(
            "PB_ENCODER_BACKEND=sentence-transformers needs torch and sentence-transformers "
            f"({absent.name} is missing): {extras.command('sentence-transformers')}"
        ) from absent
    disable_progress_bar()
    torch.set_num_threads(threads)
    wrong = (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, ImportError)
    try:
        return SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    # A model is files of others, read by libraries of others: each fails in a way of its own.
    except (*wrong, SafetensorError) as error:
        raise EncoderError(
            f"sentence-transformers cannot load {folder} ({type(error).__name__}: {error}). Where "
            "it can be loaded, save it with save_pretrained(FOLDER), and name that folder"
        ) from error


def _fast(tokenizer: object) -> Tokenizer | None:
    """Return a tokenizer's own copy that maps tokens to characters; None where it has none."""
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    return Tokenizer.from_str(backend.to_str()) if isinstance(backend, Tokenizer) else None
