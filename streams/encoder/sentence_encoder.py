"""Define the interface of sentence encoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from ground.files.array_folder import Array

Progress = Callable[[int], None]
Backend = Literal["static", "onnx", "sentence-transformers"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The number of a prompt's tokens that influence its embedding, and of all its tokens, special
    ones not counted.
    """

    read: int
    tokens: int


class SentenceEncoder(Protocol):
    """An encoder of prompts into embeddings of length 1."""

    @property
    def width(self) -> int:
        """The embeddings' length e."""

    @property
    def identity(self) -> str:
        """A name that changes whenever the embeddings may."""

    @property
    def source(self) -> str:
        """A name of the weights, which does not depend on the implementation that computes with
        them.
        """

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Embed prompts, shape (n, e); `progress` is called with the number of prompts done since
        its last call.
        """

    def reading(self, prompt: str) -> Reading:
        """Return the number of tokens that the encoder reads of a prompt, and of all its tokens."""
