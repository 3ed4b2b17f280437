"""Turn a prompt into token ids: BERT's WordPiece, with a cache of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streams.encoder.encoder_errors import EncoderError

_REMEMBERED = 16_384
"""Words that are remembered beside the vocabulary's: 29 µs instead of 230 for a prompt of 68
tokens, about 4 MB when full."""
# Longer words are one unknown token to BERT.
_LONGEST = 100
_UNKNOWN = "[UNK]"
"""BERT's piece for a word that no pieces make up."""
_PIECE = 16_384
"""Characters that are read at a time. A regular expression holds the interpreter's lock, and the
event loop runs between two pieces."""
# BERT removes control characters before it looks for words, and ends words at white space and
# signs.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACE = re.compile(r"[ \t\n\r]")
"""BERT's white space within ASCII."""
_EDGE = re.compile(r"[ \t\n\r!-/:-@\[-`{-~]")
"""Pattern of a character before which a word ends: white space, or one of ASCII's signs."""
_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
"""Pattern of one word of lower-case ASCII as BERT splits it: letters and digits together, each sign
alone."""


class Words:
    """Gives the token ids of prompts; words of plain ASCII are looked up, everything else goes
    through the tokenizer.

    The library `tokenizers` splits and normalizes; a word has the same tokens wherever it stands,
    so those of ASCII words are remembered. Special tokens are not added, and "[SEP]" in a prompt is
    text like any other.
    """

    def __init__(
        self, vocabulary: Path, *, remembered: int = _REMEMBERED, piece: int = _PIECE
    ) -> None:
        """Read `vocab.txt`.

        Args:
            remembered: most words that are remembered beside the vocabulary's.
            piece: characters that are read at a time.

        Raises:
            EncoderError: it is missing or no vocabulary.
        """
        names = _read_names(vocabulary)
        self._tokenizer = _word_piece(names)
        # A word of the vocabulary is its own token.
        self._vocabulary = {
            name: [index] for index, name in enumerate(names) if _WORD.fullmatch(name)
        }
        self._known = dict(self._vocabulary)
        self._remembered, self._piece = remembered, piece
        self._unknown = names.index(_UNKNOWN)

    def batches(self, prompt: str) -> Iterator[list[int]]:
        """Yield the ids of all tokens of a prompt, in no particular order, for one piece of the
        text at a time.
        """
        for piece in _pieces(_CONTROL.sub("", prompt), self._piece):
            plain, other = (piece, "") if piece.isascii() else _sort(piece)
            ids = self._look_up(_WORD.findall(plain.lower()))
            if (
                other
            ):  # `encode` would hold the interpreter's lock all the while, a batch of one does not
                ids += self._tokenizer.encode_batch_fast([other], add_special_tokens=False)[0].ids
            yield ids

    def token_ids(self, prompt: str) -> list[int]:
        """Return the ids of all tokens of a prompt, in no particular order."""
        return [token for ids in self.batches(prompt) for token in ids]

    def _look_up(self, words: list[str]) -> list[int]:
        known, unknown = self._known, []
        ids: list[int] = []
        for word in words:
            found = known.get(word)
            if found is not None:
                ids += found
            elif len(word) > _LONGEST:
                ids.append(self._unknown)
            else:
                unknown.append(word)
        if unknown:
            self._learn(unknown, ids)
        return ids

    def _learn(self, words: list[str], ids: list[int]) -> None:
        # The cache is cleared when full, so that a lookup is one dict access.
        if len(self._known) + len(words) > len(self._vocabulary) + self._remembered:
            self._known = dict(self._vocabulary)
        (encoding,) = self._tokenizer.encode_batch([" ".join(words)], add_special_tokens=False)
        tokens: list[list[int]] = [[] for _ in words]
        for word, token in zip(encoding.word_ids, encoding.ids, strict=True):
            tokens[word].append(token)
        ids += encoding.ids
        if len(words) <= self._remembered:
            self._known.update(zip(words, tokens, strict=True))


def _pieces(text: str, size: int) -> Iterator[str]:
    """Cut a long text after white space or a sign, where a word ends."""
    start = 0
    while start < len(text):
        edge = _EDGE.search(text, start + size)
        end = len(text) if edge is None else edge.end()
        yield text[start:end]
        start = end


def _sort(text: str) -> tuple[str, str]:
    """Split at white space; return what is plain ASCII, and what is not."""
    parts: Sequence[str] = _SPACE.split(text)
    plain = [part for part in parts if part.isascii()]
    return " ".join(plain), " ".join(part for part in parts if not part.isascii())


def _read_names(vocabulary: Path) -> list[str]:
    try:
        names = vocabulary.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise EncoderError(f"{vocabulary} cannot be read: {error}") from error
    return names[:-1] if names[-1] == "" else names


def _word_piece(names: list[str]) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(
        models.WordPiece({name: index for index, name in enumerate(names)}, unk_token=_UNKNOWN)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
