"""Define the errors between a prompt and its context."""

from __future__ import annotations


class EncoderError(Exception):
    """The encoder is not available, or cannot encode a prompt."""

    reason = "encoder_unavailable"
    retriable = False


class UnusablePrompt(EncoderError):
    """A prompt has nothing to encode, is not valid Unicode, or its context is not finite;
    `position` says which.
    """

    reason = "unusable_prompt"

    def __init__(self, problem: str, *, position: int) -> None:
        super().__init__(f"prompt {position} {problem}")
        self.position = position
