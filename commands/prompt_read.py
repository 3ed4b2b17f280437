"""Count the tokens of a prompt that the encoder reads: a router knows nothing of the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ground.files.array_folder import UnusableArrays
from schemas import RequestSubmitted
from schemas.prompt_length import is_wordless
from streams.encoder.encoder_by_settings import backend_of, sentences_of
from streams.encoder.encoder_errors import EncoderError

if TYPE_CHECKING:
    from streams.settings import Settings


@dataclass(frozen=True, slots=True)
class PromptRead:
    """The tokens of a prompt, and how many of them the settings' encoder reads. `problem` says why
    this is not known; `projection` names the router's own; `wordless`: it holds no text.
    """

    backend: str | None = None
    tokens: int | None = None
    read: int | None = None
    problem: str | None = None
    projection: str | None = None
    wordless: bool = False

    def sentence(self) -> str:
        """Return in a sentence how much of the prompt was read."""
        if self.wordless:
            return "Prompt: none, an image or sound alone; it was decided on the mean context."
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
        """Return the numbers as JSON's types."""
        return asdict(self)


def prompt_read(
    request: RequestSubmitted, settings: Settings, *, projection: str | None
) -> PromptRead | None:
    """Return what the settings' encoder reads of a request's prompt; None for a request that
    brought its context.

    A worker with other settings may read another share.
    """
    if request.context is None and is_wordless(request.prompt, request.needs):
        return PromptRead(wordless=True)
    if request.context is not None or request.prompt is None:
        return None
    try:
        backend = backend_of(settings)
        reading = sentences_of(settings).reading(request.prompt)
    # The command may run on another machine than the workers, without their encoder.
    except (EncoderError, UnusableArrays) as error:
        return PromptRead(problem=str(error))
    return PromptRead(backend, reading.tokens, reading.read, projection=projection)
