"""Project sentence embeddings to contexts: centre, rotate, whiten, and a last entry 1.0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ground.extras import sklearn
from ground.files.array_folder import (
    Array,
    Precision,
    UnusableArrays,
    checksum_arrays,
    read_arrays,
    write_arrays,
)

_NAME = "projection"
"""Name of the files in its folder."""
_SMALLEST_VARIANCE = 1e-12
"""Smallest variance of a direction, so that nothing is divided by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A principal component analysis, applied: x = [(e - mean) componentsᵀ / sqrt(variance), 1.0].

    Without components (`identity`) the embedding itself is the context, and the 1.0 follows it.

    >>> projection = Projection(np.array([1.0, 1.0]), np.array([[1.0, 0.0]]), np.array([4.0]))
    >>> projection.project(np.array([[3.0, 7.0]])).tolist()
    [[1.0, 1.0]]

    Args:
        mean: shape (e,), the embeddings' mean; zeros for the identity.
        components: shape (k, e), or None for the identity.
        explained_variance: shape (k,), variance along each component; empty for the identity.
        source: origin of the embeddings that it was fitted to, see `SentenceEncoder.source`; None:
            not known.
    """

    mean: Array
    components: Array | None
    explained_variance: Array
    source: str | None = None

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
        """Fit the principal components of embeddings (n, e), n > 1; return the projection and the
        share of the variance that it keeps.

        Raises:
            MissingExtra: scikit-learn is not installed.
        """
        pca = sklearn("decomposition").PCA(components, svd_solver="covariance_eigh")
        # If all embeddings are alike there is no variance, and all of it is kept.
        with np.errstate(invalid="ignore"):
            pca.fit(np.asarray(embeddings, dtype=np.float64))
        kept = float(pca.explained_variance_ratio_.sum())
        return (
            cls(pca.mean_, pca.components_, pca.explained_variance_),
            kept if np.isfinite(kept) else 1.0,
        )

    @property
    def embedding_width(self) -> int:
        """The length e of the embeddings that the projection takes."""
        return len(self.mean)

    @property
    def dimensions(self) -> int:
        """The length d of the contexts that the projection makes."""
        return 1 + (self.embedding_width if self.components is None else len(self.components))

    @property
    def checksum(self) -> str:
        """The SHA-256 that names this projection in priors and caches."""
        return checksum_arrays(self._arrays(), self._details())

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
        # The order of summation of a matrix product depends on the number of rows and on the CPU;
        # that of this sum does not.
        for context, row in zip(contexts, features - self.mean, strict=True):
            context[:-1] = (rotation * row).sum(axis=1)
        return contexts

    def save(self, folder: Path, *, precision: Precision = "<f8") -> str:
        """Write `projection.npz` and `projection.json` into `folder`; return the checksum."""
        return write_arrays(folder, _NAME, self._arrays(), self._details(), precision=precision)

    @classmethod
    def load(cls, folder: Path) -> Projection:
        """Read a saved projection.

        Raises:
            UnusableArrays: missing, another version, damaged, or arrays that do not fit together.
        """
        stored = read_arrays(folder, _NAME)
        arrays, source = stored.arrays, stored.details.get("source")
        try:
            return cls(
                arrays["mean"], arrays.get("components"), arrays["explained_variance"], source
            )
        except KeyError as absent:
            raise UnusableArrays(f"{folder}/{_NAME} has no array {absent}") from absent

    def _details(self) -> dict[str, str]:
        return {} if self.source is None else {"source": self.source}

    def _arrays(self) -> dict[str, Array]:
        arrays = {"mean": self.mean, "explained_variance": self.explained_variance}
        return arrays if self.components is None else {**arrays, "components": self.components}
