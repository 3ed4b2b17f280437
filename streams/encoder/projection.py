"""Project sentence embeddings to contexts: centre, rotate, whiten, and a last entry 1.0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ground.files.array_folder import (
    Array,
    Precision,
    UnusableArrays,
    checksum_arrays,
    read_arrays,
    write_arrays,
)
from streams.encoder.principal import principal_components

_NAME = "projection"
"""Name of the files in its folder."""
_SMALLEST_VARIANCE = 1e-12
"""Smallest variance of a direction, so that nothing is divided by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A principal component analysis, applied: x = [(e - mean) componentsᵀ / sqrt(variance), 1.0].

    Without components (`identity`) the embedding itself is the context, and the 1.0 follows it.

    Args:
        mean: shape (e,), the embeddings' mean; zeros for the identity.
        components: shape (k, e), orthonormal rows, or None for the identity.
        explained_variance: shape (k,), variance along each component; empty for the identity.
    """

    mean: Array
    components: Array | None
    explained_variance: Array

    def __post_init__(self) -> None:
        if self.components is None:
            return
        shapes = (self.components.shape, self.mean.shape, self.explained_variance.shape)
        k, width = len(self.explained_variance), len(self.mean)
        if shapes != ((k, width), (width,), (k,)):
            raise UnusableArrays(
                f"components, mean and explained_variance do not fit together: {shapes}"
            )

    @classmethod
    def identity(cls, width: int = 384) -> Projection:
        """Return the projection that only appends 1.0 (d = width + 1)."""
        return cls(np.zeros(width), None, np.empty(0))

    @classmethod
    def fit(cls, embeddings: Array, components: int) -> tuple[Projection, float]:
        """Fit a projection to embeddings (n, e), n > 1; return it and the share of the variance
        that it keeps.
        """
        mean, directions, variances, kept = principal_components(embeddings, components)
        return cls(mean, directions, variances), kept

    @property
    def embedding_width(self) -> int:
        """The length e of the embeddings it takes."""
        return len(self.mean)

    @property
    def dimensions(self) -> int:
        """The length d of the contexts it makes."""
        return 1 + (self.embedding_width if self.components is None else len(self.components))

    @property
    def checksum(self) -> str:
        """The SHA-256 that names this projection in priors and caches."""
        return checksum_arrays(self._arrays(), {})

    def project(self, embeddings: Array) -> Array:
        """Turn embeddings (n, e) into contexts (n, d), last entry 1.0; a row's context does not
        depend on the rows beside it.

        Raises:
            UnusableArrays: the embeddings are not (n, e).
        """
        if embeddings.ndim != 2 or embeddings.shape[1] != self.embedding_width:
            raise UnusableArrays(
                f"embeddings of shape {embeddings.shape}, expected (n, {self.embedding_width})"
            )
        contexts = np.ones((len(embeddings), self.dimensions))
        features = np.asarray(embeddings, dtype=np.float64)
        if self.components is None:
            contexts[:, :-1] = features
            return contexts
        scale = np.sqrt(np.maximum(self.explained_variance, _SMALLEST_VARIANCE))
        rotation = self.components / scale[:, None]
        # A matrix product sums in an order of its own for each number of rows and each CPU; this
        # one does not.
        for context, row in zip(contexts, features - self.mean, strict=True):
            context[:-1] = (rotation * row).sum(axis=1)
        return contexts

    def save(self, folder: Path, *, precision: Precision = "<f8") -> str:
        """Write `projection.npz` and `projection.json` into `folder`; return the checksum."""
        return write_arrays(folder, _NAME, self._arrays(), {}, precision=precision)

    @classmethod
    def load(cls, folder: Path) -> Projection:
        """Read a saved projection.

        Raises:
            UnusableArrays: missing, another version, damaged, or arrays that do not fit together.
        """
        arrays = read_arrays(folder, _NAME).arrays
        try:
            return cls(arrays["mean"], arrays.get("components"), arrays["explained_variance"])
        except KeyError as absent:
            raise UnusableArrays(f"{folder}/{_NAME} has no array {absent}") from absent

    def _arrays(self) -> dict[str, Array]:
        arrays = {"mean": self.mean, "explained_variance": self.explained_variance}
        return arrays if self.components is None else {**arrays, "components": self.components}
