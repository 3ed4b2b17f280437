"""Cut a prompt that is longer than a network's window to whole words of its beginning and end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streams.encoder.sentences import Reading

# Enough text for 256 tokens of nearly every prompt; more is read only if it was not.
_CHARACTERS = 2048
_SPECIAL = 2  # [CLS] and [SEP]
# The share of the window that the beginning has.
HEAD = 0.5


class Excerpts:
    """Takes the beginning and the end of long prompts, so that both have a say; the middle has
    none.
    """

    def __init__(self, tokenizer_file: Path, *, max_tokens: int) -> None:
        """Read a `tokenizer.json`; `max_tokens` is the network's window, special tokens
        included.
        """
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._max_tokens = max_tokens - _SPECIAL
        self._head = int(HEAD * self._max_tokens)

    def of(self, prompt: str) -> str:
        """Return the prompt, or of a long one the first and the last words that fit into the
        window.
        """
        if len(prompt) <= self._max_tokens:  # a token has at least one character
            return prompt
        first = self._first(prompt)
        if len(first.ids) <= self._max_tokens:
            return prompt
        return f"{prompt[: _end_of(first, self._head)]} {self._last(prompt)}"

    def reading(self, prompt: str) -> Reading:
        """Count the tokens of a prompt, and those that are read."""
        return Reading(len(self._encode(self.of(prompt)).ids), len(self._encode(prompt).ids))

    def _first(self, prompt: str) -> Any:
        """Return the tokens of the whole prompt, or of so much that a word after the window has
        begun.
        """
        characters = _CHARACTERS
        while True:
            encoding = self._encode(prompt[:characters])
            # A cut changes only the last word: those before it are final.
            words = encoding.word_ids
            if characters >= len(prompt) or (
                len(words) > self._max_tokens and words[self._max_tokens] < words[-1]
            ):
                return encoding
            characters *= 4

    def _last(self, prompt: str) -> str:
        tokens, characters = self._max_tokens - self._head, _CHARACTERS
        while True:
            piece = prompt[-characters:]
            encoding = self._encode(piece)
            words = encoding.word_ids
            if characters >= len(prompt) or (len(words) > tokens and words[-tokens - 1] > words[0]):
                return piece[_start_of(encoding, tokens) :]
            characters *= 4

    def _encode(self, text: str) -> Any:
        return self._tokenizer.encode(text, add_special_tokens=False)


def _end_of(encoding: Any, tokens: int) -> int:
    """Return where the last word ends that is whole within the first `tokens` tokens."""
    words = encoding.word_ids
    token = words.index(words[tokens])
    return int(encoding.offsets[token - 1][1]) if token else 0


def _start_of(encoding: Any, tokens: int) -> int:
    """Return where the first word begins that is whole within the last `tokens` tokens."""
    words = encoding.word_ids
    if len(words) <= tokens:
        return 0
    token, cut = len(words) - tokens, words[len(words) - tokens - 1]
    while token < len(words) and words[token] == cut:
        token += 1
    return int(encoding.offsets[token][0]) if token < len(words) else int(encoding.offsets[-1][1])
