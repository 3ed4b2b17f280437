"""Read and write a table of token vectors: eight bits a value, a vocabulary, and the provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ground.files.array_folder import Array
from streams.encoder.encoder_errors import EncoderError

FORMAT_VERSION = 1
"""Version of the folder's layout; another one is refused."""
VOCABULARY_FILE = "vocab.txt"
"""File with one word piece a line, in the order of the table's rows."""
_TABLE_FILE = "table.npy"
"""File with the rows of the word pieces."""
HEADER_FILE = "table.json"
"""File with version, provenance, scale, and the checksums of the other two."""
_REMEDY = "make it with `pbstream encoder distill`, or unset PB_ENCODER_PATH"
"""Advice at the end of every complaint about these files."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Token vectors: row t of `values` times `scale` is the vector of token t.

    Args:
        values: shape (tokens, e), int8.
        scale: shape (e,).
        checksum: SHA-256 of the header, which holds those of the files.
    """

    values: NDArray[np.int8]
    scale: Array
    checksum: str


def write_table(
    folder: Path,
    values: NDArray[np.int8],
    scale: Array,
    *,
    vocabulary: bytes,
    source: Mapping[str, object],
) -> None:
    """Write `table.npy`, `vocab.txt` and `table.json` with `source`, the table's provenance, into
    `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / _TABLE_FILE, values, allow_pickle=False)
    (folder / VOCABULARY_FILE).write_bytes(vocabulary)
    header = {
        "format": "token-table",
        "version": FORMAT_VERSION,
        "source": dict(source),
        "sha256": {name: _checksum(folder / name) for name in (_TABLE_FILE, VOCABULARY_FILE)},
        "scale": scale.tolist(),
    }
    (folder / HEADER_FILE).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")


def read_table(folder: Path) -> TokenTable:
    """Read what `write_table` wrote and verify it; the values stay in the page cache, shared by all
    workers of a machine.

    Raises:
        EncoderError: a file is missing, damaged, or of another version.
    """
    try:
        text = (folder / HEADER_FILE).read_bytes()
        header = json.loads(text)
        if header["version"] != FORMAT_VERSION:
            raise EncoderError(
                f"{folder} has version {header['version']}, this program reads {FORMAT_VERSION}; "
                f"{_REMEDY}"
            )
        for name, expected in header["sha256"].items():
            if _checksum(folder / name) != expected:
                raise EncoderError(
                    f"{folder / name} is not what was written (checksum differs); {_REMEDY}"
                )
        values = np.asarray(np.load(folder / _TABLE_FILE, mmap_mode="r", allow_pickle=False))
        scale = np.array(header["scale"], dtype=np.float64)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EncoderError(
            f"{folder} holds no table of token vectors ({error}); {_REMEDY}"
        ) from error
    if values.dtype != np.int8 or values.ndim != 2 or values.shape[1:] != scale.shape:
        raise EncoderError(
            f"{folder}: values {values.shape} and scale {scale.shape} do not fit together; "
            f"{_REMEDY}"
        )
    return TokenTable(values, scale, hashlib.sha256(text).hexdigest())


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
