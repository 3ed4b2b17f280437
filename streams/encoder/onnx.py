"""The encoder MiniLM in int8 on ONNX Runtime, without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ground import extras
from ground.files.array_folder import Array
from ground.json_values import Document
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.excerpt import Excerpts
from streams.encoder.sentence_encoder import Progress, Reading
from streams.encoder.to_onnx import EXPORT_VERSION, MANIFEST_FILE, MODEL_FILE, TOKENIZER_FILE
from streams.encoder.weights import source_of_weights


class OnnxEncoder:
    """Embeds each prompt by itself, as many at a time as there are threads.

    No prompt is padded or shares a batch: the activations' scales are taken from one prompt alone,
    so an embedding is the same to the last bit whatever else is encoded beside it. On a CPU a batch
    would be no faster. Of a prompt longer than the network's window the beginning and the end are
    read.
    """

    def __init__(self, folder: Path, *, threads: int) -> None:
        """Load an exported folder.

        Raises:
            EncoderError: it is missing, damaged, or written by another version.
        """
        manifest = _read_manifest(folder)
        self.width = int(manifest["width"])
        self.identity = f"int8-{manifest['model_sha256'][:16]}-ends"
        self.source = source_of_weights(manifest["weights_sha256"])
        max_tokens = int(manifest["max_tokens"])
        self._tokenizer = _load_tokenizer(folder)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._excerpts = Excerpts(_load_tokenizer(folder), max_tokens=max_tokens)
        self._session = _load_session(folder, threads)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="encoder")

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        """Embed prompts, shape (n, e), rows of length 1."""
        embeddings = np.empty((len(prompts), self.width))
        # A lone prompt stays in this thread: the session's own threads share its work.
        results = (
            map(self._embed_one, prompts)
            if len(prompts) == 1
            else self._pool.map(self._embed_one, prompts)
        )
        for index, embedding in enumerate(results):
            embeddings[index] = embedding
            if progress is not None:
                progress(1)
        return embeddings

    def reading(self, prompt: str) -> Reading:
        """Say how much of a prompt is read."""
        return self._excerpts.reading(prompt)

    def _embed_one(self, prompt: str) -> NDArray[np.float32]:
        token_ids = np.array(
            [self._tokenizer.encode(self._excerpts.of(prompt)).ids], dtype=np.int64
        )
        embedding: NDArray[np.float32] = self._session.run(None, {"token_ids": token_ids})[0]
        return embedding


def _read_manifest(folder: Path) -> Document:
    remedy = "export it with `pbstream encoder export`, or unset PB_ENCODER_PATH"
    try:
        manifest: Document = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        with (folder / MODEL_FILE).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if manifest["version"] != EXPORT_VERSION:
            raise EncoderError(
                f"{folder} has version {manifest['version']}, expected {EXPORT_VERSION}; {remedy}"
            )
        if manifest["model_sha256"] != found:
            raise EncoderError(
                f"{folder / MODEL_FILE} is not what was exported (checksum differs); {remedy}"
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoderError(f"{folder} holds no exported encoder ({error}); {remedy}") from error
    return manifest


def _load_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / TOKENIZER_FILE))


def _load_session(folder: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as absent:
        raise EncoderError(
            f"PB_ENCODER_BACKEND=onnx needs ONNX Runtime: {extras.command('onnx')}"
        ) from absent
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The arena keeps the peak of the longest prompt for ever; without it memory is given back.
    options.enable_cpu_mem_arena = False
    # Spinning threads would take the CPU from the broker and the event loop.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        str(folder / MODEL_FILE),
        options,
        providers=["CPUExecutionProvider"],
        # The fused node is five times slower on a CPU than the two it replaces.
        disabled_optimizers=["SkipLayerNormFusion"],
    )
