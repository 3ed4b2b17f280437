"""Principal components by numpy alone: a fit then needs no scikit-learn."""

from __future__ import annotations

import numpy as np

from ground.files.array_folder import Array


def principal_components(
    rows: Array, count: int, *, weights: Array | None = None
) -> tuple[Array, Array, Array, float]:
    """Return mean (e,), components (count, e), variances (count,) and the share of all variance
    that these keep.

    The largest entry of each component is positive, so that the same rows give the same signs
    everywhere.

    Args:
        rows: shape (n, e), n > 1.
        weights: shape (n,), how often each row counts; None: once each, and variances are those of
            a sample (n - 1).
    """
    share = (
        np.full(len(rows), 1.0 / (len(rows) - 1)) if weights is None else weights / weights.sum()
    )
    mean = rows.mean(axis=0) if weights is None else share @ rows
    centred = rows - mean
    variances, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
    components = vectors.T[::-1][:count]
    largest = components[np.arange(len(components)), np.abs(components).argmax(axis=1)]
    total = float(np.maximum(variances, 0.0).sum())
    kept = np.maximum(variances[::-1][:count], 0.0)
    return (
        mean,
        components * np.sign(largest)[:, None],
        kept,
        float(kept.sum()) / total if total else 1.0,
    )
