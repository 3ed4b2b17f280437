"""BERT with mean pooling as one torch module that exports to few ONNX nodes; imported by the export
alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from ground.json_values import Json


class SentenceNetwork(nn.Module):  # type: ignore[misc]  # torch is not type-checked
    """Token ids (1, tokens) to a unit-length embedding (e,), for a single prompt without padding.

    Devlin et al. 2019 (arXiv:1810.04805); Reimers and Gurevych 2019 (arXiv:1908.10084) for the
    pooling. Query, key and value are one product, and attention is one node of ONNX Runtime, so
    that little but matrix products is left.
    """

    def __init__(self, weights: Mapping[str, Tensor], network: Mapping[str, Json]) -> None:
        super().__init__()
        self._heads = int(network["num_attention_heads"])
        self._layers = int(network["num_hidden_layers"])
        self._width = int(network["hidden_size"])
        self._epsilon = float(network["layer_norm_eps"])
        # Half precision halves the largest table in memory and moves no embedding by more than
        # float noise.
        self._words = weights["embeddings.word_embeddings.weight"].half()
        # Every prompt is a first segment.
        segment = weights["embeddings.token_type_embeddings.weight"][0]
        self._positions = weights["embeddings.position_embeddings.weight"] + segment
        self._matrices = {
            name: value.T.contiguous() for name, value in weights.items() if value.dim() == 2
        }
        self._vectors = {name: value for name, value in weights.items() if value.dim() == 1}
        for layer in range(self._layers):
            own = f"encoder.layer.{layer}.attention.self."
            joined = [own + part for part in ("query", "key", "value")]
            self._matrices[f"{own}all.weight"] = torch.cat(
                [self._matrices[f"{part}.weight"] for part in joined], dim=1
            )
            self._vectors[f"{own}all.bias"] = torch.cat(
                [self._vectors[f"{part}.bias"] for part in joined]
            )

    def forward(self, token_ids: Tensor) -> Tensor:
        x = self._words[token_ids].float() + self._positions[: token_ids.shape[1]]
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(self._layers):
            x = self._block(x, f"encoder.layer.{layer}.")
        return functional.normalize(x.mean(dim=1), dim=1)[0]

    def _block(self, x: Tensor, name: str) -> Tensor:
        attended = self._attend(self._linear(x, name + "attention.self.all"))
        x = self._norm(
            x + self._linear(attended, name + "attention.output.dense"),
            name + "attention.output.LayerNorm",
        )
        inner = functional.gelu(self._linear(x, name + "intermediate.dense"))
        return self._norm(x + self._linear(inner, name + "output.dense"), name + "output.LayerNorm")

    def _attend(self, projected: Tensor) -> Tensor:
        query, key, value = projected.split(self._width, dim=-1)
        attended: Tensor = torch.onnx.ops.symbolic(
            "com.microsoft::MultiHeadAttention",
            (query, key, value),
            {"num_heads": self._heads},
            dtype=query.dtype,
            shape=query.shape,
            version=1,
        )
        return attended

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self._matrices[f"{name}.weight"] + self._vectors[f"{name}.bias"]

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self._vectors[f"{name}.weight"], self._vectors[f"{name}.bias"]
        return functional.layer_norm(x, (self._width,), weight, bias, self._epsilon)
