"""The default encoder: the mean of token vectors from a table, without torch and without ONNX
Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ground.files.array_folder import Array
from streams.encoder.sentence_encoder import Progress, Reading
from streams.encoder.token_table import VOCABULARY_FILE, read_table
from streams.encoder.word_pieces import Words

SHIPPED = Path(__file__).with_name("minilm")
"""The encoder that comes with the package."""


class StaticEncoder:
    """Embeds a prompt as the mean of the vectors of all its tokens, brought to length 1.

    The table holds whole numbers, so their sum is exact: an embedding is the same to the last bit
    whatever is encoded beside it, in which order its tokens are added, and on which CPU.
    """

    def __init__(self, folder: Path = SHIPPED) -> None:
        """Load a table.

        Raises:
            EncoderError: it is missing, damaged, or of another version.
        """
        table = read_table(folder)
        self._values, self._scale = table.values, table.scale
        self._words = Words(folder / VOCABULARY_FILE)
        self.width = len(table.scale)
        self.identity = self.source = f"static-{table.checksum[:16]}"

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Embed prompts, shape (n, e), rows of length 1; zeros where a prompt has no token at
        all.
        """
        embeddings = np.empty((len(prompts), self.width))
        for index, prompt in enumerate(prompts):
            embeddings[index] = self._embed_one(prompt)
            if progress is not None:
                progress(1)
        return embeddings

    def reading(self, prompt: str) -> Reading:
        """Say how much of a prompt is read: all of it."""
        tokens = len(self._words.token_ids(prompt))
        return Reading(tokens, tokens)

    def _embed_one(self, prompt: str) -> Array:
        total = np.zeros(self.width, dtype=np.int64)
        for ids in self._words.batches(prompt):
            total += self._values[np.array(ids, dtype=np.intp)].sum(axis=0, dtype=np.int64)
        # The length takes the number of tokens out again, so the sum stands for the mean.
        embedding = total * self._scale
        length = math.sqrt(math.fsum((embedding * embedding).tolist()))
        return embedding / length if length else embedding
