"""Cut a prompt that is longer than a network's window to whole words of its beginning and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from streams.encoder.sentence_encoder import Reading

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_CHARACTERS = 2048
"""Characters that are read first: enough for 256 tokens of nearly every prompt."""
HEAD = 0.5
"""Share of the window that the beginning of a prompt has."""


class Excerpts:
    """Cuts long prompts to their beginning and their end."""

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int, before: str = "") -> None:
        """Take a tokenizer of the library `tokenizers`, which nobody else may use.

        Args:
            max_tokens: the network's window, special tokens included.
            before: the model's default prompt, which is put before each text.
        """
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        taken = tokenizer.num_special_tokens_to_add(False) + len(self._encode(before).ids)
        self._max_tokens = max(1, max_tokens - taken)
        self._head = int(HEAD * self._max_tokens)

    def of(self, prompt: str) -> str:
        """Return the prompt, or the first and the last words of a long one that fit into the
        window.
        """
        # A token has at least one byte.
        if len(prompt.encode("utf-8", "replace")) <= self._max_tokens:
            return prompt
        first = self._first(prompt)
        if len(first.ids) <= self._max_tokens:
            return prompt
        return f"{prompt[: _end_of(first, self._head)]} {self._last(prompt)}"

    def reading(self, prompt: str) -> Reading:
        """Count the tokens of a prompt, and those that are read."""
        return Reading(len(self._encode(self.of(prompt)).ids), len(self._encode(prompt).ids))

    def _first(self, prompt: str) -> Encoding:
        """Return the tokens of the whole prompt, or of its beginning up to a word behind the
        window.
        """
        characters = _CHARACTERS
        while True:
            encoding = self._encode(prompt[:characters])
            # A cut changes only the last word; the words before it are final.
            words = _words(encoding)
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
            words = _words(encoding)
            if characters >= len(prompt) or (len(words) > tokens and words[-tokens - 1] > words[0]):
                return piece[_start_of(encoding, tokens) :]
            characters *= 4

    def _encode(self, text: str) -> Encoding:
        return self._tokenizer.encode(text, add_special_tokens=False)


def _words(encoding: Encoding) -> list[int]:
    """Return the word of each token; without special tokens each has one."""
    return cast("list[int]", encoding.word_ids)


def _end_of(encoding: Encoding, tokens: int) -> int:
    """Return the end of the last whole word within the first `tokens` tokens; a single word that
    fills them is cut.
    """
    words = _words(encoding)
    token = words.index(words[tokens]) or tokens
    return int(encoding.offsets[token - 1][1]) if token else 0


def _start_of(encoding: Encoding, tokens: int) -> int:
    """Return the begin of the first whole word within the last `tokens` tokens; a single word that
    fills them is cut.
    """
    words = _words(encoding)
    if len(words) <= tokens:
        return 0
    token, cut = len(words) - tokens, words[len(words) - tokens - 1]
    while token < len(words) and words[token] == cut:
        token += 1
    return int(encoding.offsets[token if token < len(words) else len(words) - tokens][0])
