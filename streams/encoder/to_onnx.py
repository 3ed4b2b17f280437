"""Turn a sentence-transformers model into a small int8 ONNX model, once; needs the extra
`reference`.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ground import extras
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.weights import MAX_TOKENS, find_weights, hash_weights, is_mean_of_tokens

# Raised whenever the exported network computes something else: old exports are then made again.
EXPORT_VERSION = 1
MODEL_FILE = "model.onnx"
"""File with the network."""
TOKENIZER_FILE = "tokenizer.json"
"""File with the tokenizer, as Hugging Face's library reads it."""
MANIFEST_FILE = "encoder.json"
"""File that describes the export, with checksums."""

_OPSET = 20
"""Version of ONNX's operators."""


def export_encoder(out_dir: Path, weights: str | None = None) -> Path:
    """Write `model.onnx` (int8), `tokenizer.json` and `encoder.json` into `out_dir`; return it.

    The network is exported by `torch.onnx` with everything from token ids to the unit-length
    embedding inside, then its matrix products are quantized dynamically: 7-bit weights per output
    channel, 8-bit activations per prompt. Seven bits because CPUs without VNNI saturate when two
    8-bit products are added; so all CPUs make the same contexts.

    Raises:
        EncoderError: the extra or the weights are missing, or the model is not a BERT with mean
        pooling.
    """
    folder = find_weights(weights)
    network = _read_network(folder)
    try:
        model = _quantized(network, folder)
    except ImportError as absent:
        raise EncoderError(
            f"exporting needs torch and onnx ({absent.name} is missing): "
            f"{extras.command('reference')}"
        ) from absent
    out_dir.mkdir(parents=True, exist_ok=True)
    (out_dir / MODEL_FILE).write_bytes(model)
    shutil.copyfile(folder / TOKENIZER_FILE, out_dir / TOKENIZER_FILE)
    manifest = {
        "version": EXPORT_VERSION,
        "width": network["hidden_size"],
        "max_tokens": network["max_tokens"],
        "weights_sha256": hash_weights(folder),
        "model_sha256": hashlib.sha256(model).hexdigest(),
    }
    (out_dir / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return out_dir


def _read_network(folder: Path) -> dict[str, object]:
    """Return the model's configuration, refusing what the exported network would compute
    differently.
    """
    network: dict[str, object] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    bert = network.get("model_type") == "bert" and network.get("hidden_act") == "gelu"
    if not bert or not is_mean_of_tokens(folder):
        raise EncoderError(
            f"{folder} is not a BERT with mean pooling, which is all that can be exported; use "
            "PB_ENCODER_BACKEND=sentence-transformers"
        )
    network["max_tokens"] = _read_optional(folder / "sentence_bert_config.json").get(
        "max_seq_length", MAX_TOKENS
    )
    return network


def _read_optional(path: Path) -> dict[str, object]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _quantized(network: dict[str, object], folder: Path) -> bytes:
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from safetensors.torch import load_file

    from streams.encoder.network import SentenceNetwork

    module = SentenceNetwork(load_file(folder / "model.safetensors"), network).eval()
    with _quiet():
        exported = torch.onnx.export(
            module,
            (torch.ones((1, 8), dtype=torch.int64),),
            dynamo=True,
            verbose=False,
            opset_version=_OPSET,
            input_names=["token_ids"],
            output_names=["embedding"],
            dynamic_shapes=(
                {1: torch.export.Dim("tokens", min=2, max=network["max_position_embeddings"])},
            ),
        )
        assert exported is not None
        with tempfile.TemporaryDirectory() as scratch:
            target = Path(scratch) / MODEL_FILE
            quantize_dynamic(
                exported.model_proto,
                target,
                op_types_to_quantize=["MatMul"],
                weight_type=QuantType.QInt8,
                per_channel=True,
                reduce_range=True,
            )
            return target.read_bytes()


@contextmanager
def _quiet() -> Iterator[None]:
    # The exporter and the quantizer report on themselves; nothing of it can be acted on here.
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


if __name__ == "__main__":
    try:
        export_encoder(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
    except EncoderError as error:
        sys.exit(str(error))
