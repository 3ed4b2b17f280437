"""Count how much of a request's prompt the encoder read: a router knows no more of it than that."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ground.files.array_folder import UnusableArrays
from schemas import RequestSubmitted
from streams.encoder.errors import EncoderError
from streams.encoder.load import backend_of, sentences_of

if TYPE_CHECKING:
    from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class PromptRead:
    """Tokens of a prompt and how many of them are read, by the encoder of these settings;
    `problem`: why that is not known; `projection`: the router's own, by name.
    """

    backend: str | None = None
    tokens: int | None = None
    read: int | None = None
    problem: str | None = None
    projection: str | None = None

    def sentence(self) -> str:
        """Say it for people."""
        if self.problem is not None:
            return f"Prompt: how much of it was read is not known here ({self.problem})."
        by = self.backend if self.projection is None else f"{self.backend}, {self.projection}"
        if self.read == self.tokens:
            return f"Prompt: all of its {self.tokens:,} tokens are read ({by})."
        return (
            f"Prompt: {self.read:,} of its {self.tokens:,} tokens are read, the first and the "
            f"last ones ({by})."
        )

    def as_json(self) -> dict[str, object]:
        """Return it for programs."""
        return asdict(self)


def prompt_read(
    request: RequestSubmitted, settings: Settings, *, projection: str | None
) -> PromptRead | None:
    """Return what the settings' encoder reads of a request's prompt; None for a request that
    brought its context.

    A worker with other settings may read another share.
    """
    if request.context is not None or request.prompt is None:
        return None
    try:
        backend = backend_of(settings)
        reading = sentences_of(settings).reading(request.prompt)
    # A command explains a decision wherever it runs; the encoder may be on the workers' machines
    # alone.
    except (EncoderError, UnusableArrays) as error:
        return PromptRead(problem=str(error))
    return PromptRead(backend, reading.tokens, reading.read, projection=projection)
