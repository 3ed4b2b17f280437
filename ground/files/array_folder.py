"""Named arrays on disk with a JSON header: versioned, checksummed, never pickled."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ground.files.atomic_file import replacing
from ground.json_values import Document

FORMAT_VERSION = 1
"""Version of the folder's layout; another one is refused."""

Array = NDArray[np.float64]
Precision = Literal["<f8", "<f2"]
"""Type of the numbers on disk, in numpy's notation; in memory all are doubles."""


class UnusableArrays(ValueError):
    """The folder's arrays are missing, of another version, or not those that were written."""

    reason = "unusable_arrays"
    retriable = False


@dataclass(frozen=True, slots=True)
class StoredArrays:
    """The content of one header and its arrays; `checksum` names it."""

    arrays: dict[str, Array]
    details: Document
    checksum: str


def folder_named(name: str, *, inside: Path | None) -> Path:
    """Return the path of the folder that a declaration names.

    Raises:
        UnusableArrays: no folder was set, or the name leads out of it.
    """
    if inside is None:
        raise UnusableArrays("PB_PRIORS_PATH is not set: references are names of folders in it")
    # A declaration comes from the network: `../..` must not lead out of the folder.
    if Path(name).name != name:
        raise UnusableArrays(f"{name!r} does not name a folder in PB_PRIORS_PATH")
    return inside / name


def checksum_arrays(arrays: Mapping[str, Array], details: Mapping[str, object]) -> str:
    """Return the SHA-256 of names, shapes, bytes and details: equal content, equal checksum."""
    # The checksum covers the content, not the files: a zip holds times, which differ each time.
    digest = hashlib.sha256(json.dumps(details, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype="<f8")
        digest.update(f"\n{name}{array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_arrays(
    folder: Path,
    name: str,
    arrays: Mapping[str, Array],
    details: Mapping[str, object],
    *,
    precision: Precision = "<f8",
) -> str:
    """Write `name.npz` and `name.json` into `folder`, each by one rename. Return the checksum of
    the values as `read_arrays` will return them.

    Raises:
        UnusableArrays: an array holds a NaN or an infinity, or would in this precision.
    """
    arrays = {key: np.asarray(array, dtype=precision) for key, array in arrays.items()}
    for key, array in arrays.items():
        if not np.isfinite(array).all():
            raise UnusableArrays(f"{name}: array {key!r} holds a value that is not finite")
    checksum = checksum_arrays(arrays, details)
    header = {
        "format": name,
        "version": FORMAT_VERSION,
        "checksum": checksum,
        "details": dict(details),
    }
    with replacing(folder / f"{name}.npz") as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    with replacing(folder / f"{name}.json") as part:
        part.write_text(json.dumps(header, indent=2) + "\n", encoding="utf-8")
    return checksum


def read_arrays(folder: Path, name: str) -> StoredArrays:
    """Read what `write_arrays` wrote and verify it.

    Raises:
        UnusableArrays: a file is missing or unreadable, the version is another, or the checksum
        differs.
    """
    try:
        header = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        with (
            (folder / f"{name}.npz").open("rb") as file,
            np.load(file, allow_pickle=False) as stored,
        ):
            arrays = {key: np.asarray(stored[key], dtype=np.float64) for key in stored.files}
        version, checksum, details = header["version"], header["checksum"], header["details"]
    except FileNotFoundError as missing:
        raise UnusableArrays(
            f"{missing.filename} does not exist; `pbstream fit` writes it"
        ) from missing
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as broken:
        raise UnusableArrays(f"{folder}/{name} cannot be read: {broken}") from broken
    if version != FORMAT_VERSION:
        raise UnusableArrays(
            f"{folder}/{name} has version {version}, this program reads {FORMAT_VERSION}"
        )
    if checksum != checksum_arrays(arrays, details):
        raise UnusableArrays(
            f"{folder}/{name} is not what was written (checksum differs); fit it again"
        )
    return StoredArrays(arrays, details, checksum)
