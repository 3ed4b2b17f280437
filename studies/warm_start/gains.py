"""Separate gains from chance, by doubly robust outcomes and intervals over prompts."""

from __future__ import annotations

import numpy as np

from ground.files.array_folder import Array

CONFIDENCE = 0.95
"""Probability with which all gains together are within their intervals."""
DRAWS = 10_000
"""Draws of the largest deviation, of which a quantile is taken: right to two digits."""


def corrected(outcomes: Array, predicted: Array) -> Array:
    """Return doubly robust outcomes, shape (n, K): the mean over any choice of models is unbiased.

    A choice by predictions favours predictions that are too high. The differences between known
    outcomes and their predictions correct that. Each difference also counts for prompts whose
    outcome is not known (Dudík et al. 2011). Which prompts a model answered must not depend on how
    well it answers them.
    """
    known = np.isfinite(outcomes)
    share = np.maximum(known.mean(0), 1.0 / len(outcomes))
    missed = np.where(known, outcomes - predicted, 0.0)
    found: Array = predicted + missed / share
    return found


def half_widths(differences: Array) -> Array:
    """Return half of the widths of m simultaneous intervals, for the means of differences, shape
    (n, m), over n prompts. All m intervals hold together with `CONFIDENCE`.

    The largest of m means is often large by chance. So the quantile is that of the largest of m
    correlated Student deviates (max-t).
    """
    n, m = differences.shape
    if n < 2:
        return np.ones(m)  # of rewards in [0, 1] no difference of means is larger
    errors = differences.std(0, ddof=1) / np.sqrt(n)
    varies = errors > 1e-12  # where both choose alike on every prompt nothing is left to chance
    if not varies.any():
        return np.zeros(m)
    standard = (differences - differences.mean(0))[:, varies] / (errors[varies] * np.sqrt(n))
    values, vectors = np.linalg.eigh(standard.T @ standard / (n - 1))
    rng = np.random.default_rng(0)  # the same file gives the same figures
    drawn = rng.normal(size=(DRAWS, len(values))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    largest = np.abs(drawn).max(1) / np.sqrt(rng.chisquare(n - 1, size=DRAWS) / (n - 1))
    found: Array = np.minimum(np.quantile(largest, CONFIDENCE) * errors, 1.0)
    return found
