"""Draw random texts from a vocabulary that is sorted by frequency, by Zipf's law."""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray

from ground.files.array_folder import Array

# How often signs, single letters and digits, and other single characters stand in prompts; all else
# follows Zipf's law.
_SIGNS, _LETTERS, _OTHERS = 0.15, 0.05, 0.01
_WITHOUT_WORDS = _SIGNS + _LETTERS + _OTHERS
"""Share of prompts' tokens that do not follow Zipf's law."""
# The logarithm of a text's number of tokens (mean, deviation), and the most that it has.
_LENGTH, _SPREAD, _LONGEST = float(np.log(60)), 1.2, 4_000


def token_frequencies(names: list[str]) -> Array:
    """Return how often each token of a BERT's vocabulary is to be expected, shape (tokens,),
    sum 1.
    """
    single = np.array([len(name) == 1 for name in names])
    sign = np.array([len(name) == 1 and name in string.punctuation for name in names])
    letter = np.array([len(name) == 1 and name.isascii() and name.isalnum() for name in names])
    special = np.array(
        [len(name) > 2 and name.startswith("[") and name.endswith("]") for name in names]
    )
    word = ~single & ~special
    frequencies: Array = np.where(single, 1.0, 0.0)
    frequencies[word] = 1.0 / np.arange(1, word.sum() + 1)
    for kind, share in (
        (sign, _SIGNS),
        (letter, _LETTERS),
        (single & ~sign & ~letter, _OTHERS),
        (word, 1.0 - _WITHOUT_WORDS),
    ):
        frequencies[kind] *= share / max(frequencies[kind].sum(), 1.0)
    frequencies /= frequencies.sum()
    return frequencies


def draw_texts(frequencies: Array, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tokens of `count` texts, one text after the other, and the position at which each
    text begins, shape (count,). Every call returns the same texts.
    """
    rng = np.random.default_rng(0)
    lengths = np.clip(np.exp(rng.normal(_LENGTH, _SPREAD, count)), 1, _LONGEST).astype(np.int64)
    tokens = rng.choice(len(frequencies), size=int(lengths.sum()), p=frequencies)
    return tokens, np.concatenate([[0], np.cumsum(lengths)[:-1]])
