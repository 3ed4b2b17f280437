"""From a prompt to the ids of its tokens: WordPiece as BERT does it, with the words met before at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streams.encoder.errors import EncoderError

# Beside the words of the vocabulary itself; 29 µs instead of 230 for a prompt of 68 tokens, about 4 MB when full.
_REMEMBERED = 16_384
# Longer words are one [UNK] to BERT, and would only fill the memory.
_LONGEST = 100
# A regular expression holds the interpreter's lock: 1 MiB in one piece would stop the event loop for 30 ms.
_PIECE = 65_536
# BERT removes control characters before it looks for words, and ends words at white space and signs.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPACE = re.compile(r"[ \t\n\r]")
_WORD = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


class Words:
    """Gives the token ids of prompts; words of plain ASCII are looked up, everything else goes through the tokenizer.

    The library `tokenizers` splits and normalizes; a word has the same tokens wherever it stands, so those of ASCII
    words are remembered. Special tokens are not added, and "[SEP]" in a prompt is text like any other.
    """

    def __init__(self, vocabulary: Path) -> None:
        """Read `vocab.txt`.

        Raises:
            EncoderError: it is missing or no vocabulary.
        """
        names = _read_names(vocabulary)
        self._tokenizer = _word_piece(names)
        # A word of the vocabulary is its own token.
        self._vocabulary = {name: [index] for index, name in enumerate(names) if _WORD.fullmatch(name)}
        self._known = dict(self._vocabulary)

    def token_ids(self, prompt: str) -> list[int]:
        """Return the ids of all tokens of a prompt, in no particular order."""
        ids: list[int] = []
        for piece in _pieces(_CONTROL.sub("", prompt)):
            plain, other = (piece, "") if piece.isascii() else _sort(piece)
            self._look_up(_WORD.findall(plain.lower()), ids)
            if other:
                ids += self._encode(other).ids
        return ids

    def _look_up(self, words: list[str], ids: list[int]) -> None:
        known, unknown = self._known, []
        for word in words:
            found = known.get(word)
            if found is None:
                unknown.append(word)
            else:
                ids += found
        if unknown:
            ids += self._learn(unknown)

    def _learn(self, words: list[str]) -> list[int]:
        if len(self._known) + len(words) > len(self._vocabulary) + _REMEMBERED:
            self._known = dict(self._vocabulary)
        encoding = self._encode(" ".join(words))
        ids: list[int] = encoding.ids
        if len(words) <= _REMEMBERED:
            tokens: list[list[int]] = [[] for _ in words]
            for word, token in zip(encoding.word_ids, ids, strict=True):
                tokens[word].append(token)
            self._known.update(pair for pair in zip(words, tokens, strict=True) if len(pair[0]) <= _LONGEST)
        return ids

    def _encode(self, text: str) -> Any:
        return self._tokenizer.encode(text, add_special_tokens=False)


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text at white space."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _PIECE)
        end = len(text) if space is None else space.end()
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

    tokenizer = Tokenizer(models.WordPiece({name: index for index, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
