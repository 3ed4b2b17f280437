"""Fit the projection of embeddings: principal components, or partial least squares."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from ground.extras import sklearn
from ground.files.array_folder import Array
from streams.encoder.projection import Projection
from studies.warm_start.judgements import UnusableJudgements
from studies.warm_start.lines import FEW, folds, predict

Kind = Literal["pca", "pls"]
SUPERVISED = (2, 4, 8)
"""Numbers of directions that partial least squares is tried with (lab/docs/fit.md)."""
LEAST_PROMPTS = 40
"""Fewest prompts for a cross-validation of projections: eight a fold."""
MOST_PROMPTS = 5_000
"""Most prompts that cross-validation looks at: an error is known to 1.4 % then."""
LEAST_SPREAD = 1e-6
"""Share of the largest variance that the smallest component has at least. Whitening a direction
without variance would divide by rounding, and later prompts that differ in it would be refused.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A fitted projection, and its errors in cross-validation.

    Attributes:
        kind: principal components, or partial least squares.
        kept: share of the embeddings' variance that the projection keeps.
        unseen: for partial least squares, one array of all prompts' contexts per fold, shape (n,
            d), by a projection that was fitted without the fold's outcomes.
        errors: squared error of held-out rewards and log-costs in shares of their variance, by
            number of directions, principal components first; empty: too few prompts.
    """

    projection: Projection
    kind: Kind
    kept: float
    unseen: list[Array] | None
    errors: dict[int, float]


def choose_projection(embeddings: Array, outcomes: Array, components: int) -> Chosen:
    """Fit principal components, or partial least squares where these predict held-out rewards and
    costs better by more than one standard error.

    Args:
        embeddings: shape (n, e), n > components.
        outcomes: shape (n, m), rewards and logarithms of costs; NaN: not known.
        components: how many principal components; partial least squares takes fewer.

    Raises:
        UnusableJudgements: prompts differ in fewer directions than `components`.
    """
    pca, kept = Projection.fit(embeddings, components)
    _require_spread(pca.explained_variance, prompts=len(embeddings))
    targets = standardised(outcomes)
    counts = [components, *(count for count in SUPERVISED if count < components)]
    if len(embeddings) < LEAST_PROMPTS or not targets.shape[1] or len(counts) == 1:
        return Chosen(pca, "pca", kept, None, {})
    errors = _held_out_errors(embeddings, targets, counts)
    told = dict(zip(counts, errors.mean(axis=0).tolist(), strict=True))
    # Principal components win within one standard error, as models that are added later may differ
    # in other directions.
    gains = errors[:, :1] - errors
    best = int(gains.mean(axis=0).argmax())
    if gains[:, best].mean() <= gains[:, best].std(ddof=1) / np.sqrt(len(gains)):
        return Chosen(pca, "pca", kept, None, told)
    fit = partial(fit_supervised, components=counts[best])
    pls, kept = fit(embeddings, targets)
    unseen = [
        fit(embeddings[learned], targets[learned])[0].project(embeddings)
        for learned, _ in folds(len(embeddings))
    ]
    return Chosen(pls, "pls", kept, unseen, told)


def fit_supervised(embeddings: Array, targets: Array, components: int) -> tuple[Projection, float]:
    """Fit partial least squares to embeddings (n, e) and standardised outcomes (n, m); return the
    projection, whose contexts are uncorrelated with variance 1, and the share of the embeddings'
    variance that it keeps.

    Wold et al. 2001, "PLS-regression: a basic tool of chemometrics". An outcome that is not known
    counts as the mean.
    """
    mean = embeddings.mean(axis=0)
    centred = embeddings - mean
    found = sklearn("cross_decomposition").PLSRegression(components, scale=False)
    with warnings.catch_warnings():
        # Where nothing is left to predict, further directions are arbitrary; cross-validation says
        # whether they help.
        warnings.simplefilter("ignore")
        found.fit(centred, np.nan_to_num(targets))
    scores = centred @ found.x_rotations_
    missed = centred - scores @ found.x_loadings_.T
    kept = 1.0 - float((missed**2).sum() / (centred**2).sum())
    return Projection(mean, found.x_rotations_.T, scores.var(axis=0, ddof=1)), kept


def standardised(outcomes: Array) -> Array:
    """Return the outcomes that vary, with mean 0 and variance 1."""
    outcomes = outcomes[:, np.isfinite(outcomes).sum(axis=0) > FEW]
    spread = np.nanstd(outcomes, axis=0)
    some = spread > 1e-9
    found: Array = (outcomes[:, some] - np.nanmean(outcomes[:, some], axis=0)) / spread[some]
    return found


def _held_out_errors(embeddings: Array, targets: Array, counts: list[int]) -> Array:
    """Return the mean squared error of each prompt's outcomes, shape (prompts, len(counts)), by
    principal components of the first count and by partial least squares of the others.
    """
    rows = np.random.default_rng(0).permutation(len(embeddings))[:MOST_PROMPTS]
    rows = rows[np.isfinite(targets[rows]).any(axis=1)]
    embeddings, targets = embeddings[rows], targets[rows]
    errors = np.empty((len(rows), len(counts)))
    for learned, asked in folds(len(rows)):
        fits = [
            Projection.fit(embeddings[learned], min(counts[0], len(learned) - 1)),
            *(fit_supervised(embeddings[learned], targets[learned], k) for k in counts[1:]),
        ]
        for k, (projection, _) in enumerate(fits):
            X = projection.project(embeddings)
            found = predict(X[learned], targets[learned], X[asked])
            errors[asked, k] = np.nanmean((found - targets[asked]) ** 2, axis=1)
    return errors


def _require_spread(variances: Array, *, prompts: int) -> None:
    """Check that prompts differ along every component, whose variances are given, largest first.

    Raises:
        UnusableJudgements: they do not.
    """
    spread = int(np.count_nonzero(variances > LEAST_SPREAD * variances[0]))
    if spread < len(variances):
        fewer = f", or --components {spread}" if spread else ""
        raise UnusableJudgements(
            f"the {prompts} prompts differ in {spread} directions, and {len(variances)} components "
            f"need {len(variances)}: many are made of the same words. Give prompts of more "
            f"kinds{fewer}"
        )
