"""Estimate the shared prior, means and scales, from the evidence of all models.

Several priors at once, as calls of numpy are the cost: rewards and bills are mostly due together,
and a batch of requests is of many routers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from router_state.config import Matrix, Vector
from router_state.learning import evidence
from router_state.learning.evidence import Scales
from router_state.learning.regression import Regression
from router_state.learning.shared_prior import Ridges, SharedPrior

SAME = 1e-12
"""Largest difference, in rewards or logarithms, of coefficients that are equal but for rounding."""


class Part(NamedTuple):
    """A prior, the regressions that share it, and what is left of their evidence where that is not
    what they say."""

    prior: SharedPrior
    regressions: Sequence[Regression]
    left: Sequence[float] | None = None


class Conclusion(NamedTuple):
    """What is to be believed of a prior from now on: `regressions` conclude from their own row of
    `inverse` and `theta`, those that have observed nothing from what is shared alone."""

    prior: SharedPrior
    ridges: Ridges
    center: Vector
    mean: Vector
    regressions: Sequence[Regression]
    inverse: Matrix
    theta: Matrix
    idle: Sequence[Regression]

    def take(self) -> None:
        """Let prior and regressions believe it."""
        prior = self.prior
        prior.conclude(self.ridges, self.center, self.mean)
        for one, inverse, theta in zip(self.regressions, self.inverse, self.theta, strict=True):
            one.conclude(inverse, theta)
        if self.idle:
            inverse = np.diag(1.0 / prior.ridges)
            for one in self.idle:
                one.conclude(inverse, prior.mean)


def estimate(*parts: Part, rescaled: bool = True) -> None:
    """Estimate shared coefficients, and the scales too, and let every regression conclude."""
    for conclusion in estimated(parts, rescaled=rescaled):
        conclusion.take()


def estimated(parts: Iterable[Part], *, rescaled: bool = True) -> list[Conclusion]:
    """Return what follows from the evidence of all regressions. O(N·d³) for N of them that have
    observed something. Nothing changes yet."""
    priors: list[SharedPrior] = []
    known: list[list[Regression]] = []
    idle: list[list[Regression]] = []
    inverses: list[Matrix] = []
    thetas: list[Vector] = []
    left: list[float] = []
    found: list[Conclusion] = []
    for part in parts:
        prior, blank = part.prior, _Blank(part.prior)
        seen: list[Regression] = []
        unseen: list[Regression] = []
        for k, one in enumerate(part.regressions):
            one.flush()
            inverse, theta = one.inverse, one.theta
            # Where none has observed anything, one says so for all.
            if (seen or k + 1 < len(part.regressions)) and blank.is_held(inverse, theta):
                unseen.append(one)
                continue
            seen.append(one)
            inverses.append(inverse)
            thetas.append(theta)
            left.append(one.decay if part.left is None else part.left[k])
        if seen:
            priors.append(prior)
            known.append(seen)
            idle.append(unseen)
        else:
            none = np.empty(0)
            found.append(
                Conclusion(prior, prior.scales, prior.center, prior.mean, [], none, none, [])
            )
    if not priors:
        return found
    scales = _scales(priors, [len(seen) for seen in known])
    inverse, excess = np.array(inverses), np.array(thetas)
    excess -= scales.each(np.array([prior.mean for prior in priors]))
    A, y = evidence.sums(inverse, excess, np.array(left), scales.each(scales.ridges))
    before = (inverse, excess) if rescaled else None
    return found + _concluded(priors, known, idle, A, y, before, scales)


def conclude_shifted(
    prior: SharedPrior, regressions: Sequence[Regression], shifts: Sequence[float]
) -> None:
    """Move every observation of each regression by its shift, and conclude at the same scales."""
    for one in regressions:
        one.flush()
    scales = _scales([prior], [len(regressions)])
    inverse = np.array([one.inverse for one in regressions])
    excess = np.array([one.theta for one in regressions]) - prior.mean
    left = np.array([one.decay for one in regressions])
    A, y = evidence.sums(inverse, excess, left, scales.each(scales.ridges))
    # The last feature is 1 for every context: the last row of A is Σx.
    y += np.array(shifts)[:, None] * A[:, -1]
    for conclusion in _concluded([prior], [regressions], [[]], A, y, None, scales):
        conclusion.take()


def _concluded(
    priors: Sequence[SharedPrior],
    known: Sequence[Sequence[Regression]],
    idle: Sequence[Sequence[Regression]],
    A: Matrix,
    y: Matrix,
    before: tuple[Matrix, Matrix] | None,
    scales: Scales,
) -> list[Conclusion]:
    """Conclude from the evidence A, y; `before` are V_a and V_a·y_a at the scales as they are, as
    if nothing was forgotten since the last estimate, which scales need not know; or None: they
    stay."""
    spreads = evidence.spreads(A, scales)
    ridges = [prior.scales for prior in priors]
    if before is not None:
        sizes = evidence.sizes(*before, scales)
        ridges = [
            prior.rescaled(found, square)
            for prior, found, (square, _) in zip(priors, sizes, spreads, strict=True)
        ]
        scales = _scales(priors, scales.counts, ridges)
    fitted = evidence.fit(A, y, scales)
    means = np.array([prior.mean for prior in priors])
    theta = fitted.excess
    theta += scales.each(means)
    means += fitted.shift
    found, start = [], 0
    for group, prior in enumerate(priors):
        rows = slice(start, start + scales.counts[group])
        start = rows.stop
        _, center = spreads[group]
        found.append(
            Conclusion(
                prior,
                ridges[group],
                prior.center if center is None else center,
                means[group],
                known[group],
                fitted.inverse[rows],
                theta[rows],
                idle[group],
            )
        )
    return found


class _Blank:
    """What a regression of a prior holds that has observed nothing. It says nothing, and of eleven
    young arms that is most."""

    __slots__ = ("_inverse", "_prior", "_variance")

    def __init__(self, prior: SharedPrior) -> None:
        self._prior, self._variance, self._inverse = prior, 1.0 / prior.bias_ridge, b""

    def is_held(self, inverse: Matrix, theta: Vector) -> bool:
        """Tell whether this is it."""
        # The last feature of every context is 1: any observation has changed this entry.
        if inverse.item(-1) != self._variance:
            return False
        if not self._inverse:
            self._inverse = np.diag(1.0 / self._prior.ridges).tobytes()
        return (
            inverse.tobytes() == self._inverse
            and np.abs(theta - self._prior.mean).max().item() <= SAME
        )


def _scales(
    priors: Sequence[SharedPrior], counts: list[int], ridges: Sequence[Ridges] | None = None
) -> Scales:
    """Return what is assumed of priors with so many regressions each, at other scales than theirs
    if these are given."""
    d, ridges = priors[0].d, ridges or [prior.scales for prior in priors]
    biases = [prior.shared_bias_ridge for prior in priors]
    toward = _rows([(0.0, prior.guess) for prior in priors], d)
    toward -= np.array([prior.mean for prior in priors])
    shared = [(one.shared, bias) for one, bias in zip(ridges, biases, strict=True)]
    shared_ridges = _rows(shared, d)
    toward *= shared_ridges
    return Scales(_rows([(one.own, one.bias) for one in ridges], d), shared_ridges, toward, counts)


def _rows(entries: list[tuple[float, float]], d: int) -> Matrix:
    """Return rows of d entries, the first of a pair for all features, the second for the bias."""
    return np.array([[features] * (d - 1) + [bias] for features, bias in entries])
