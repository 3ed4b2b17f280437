"""Estimate what arms share, and how large their differences are, from the evidence of all of them.

Several pools at once, as calls of numpy are the cost: rewards and bills are mostly due together,
and a batch of requests is of many routers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from router_state.config import Matrix, Vector
from router_state.learning import evidence as posterior
from router_state.learning.evidence import Regression, Scales
from router_state.learning.linalg import symmetric_inverse
from router_state.learning.shared_prior import Pool, Ridges

SAME = 1e-12
"""By how much coefficients, of rewards or of logarithms, differ that are the same but for
rounding."""


class Part(NamedTuple):
    """A pool, the regressions that share it, and what is left of their evidence where that is not
    what they say."""

    pool: Pool
    regressions: Sequence[Regression]
    left: Sequence[float] | None = None


class Conclusion(NamedTuple):
    """What is to be believed of a pool from now on: `regressions` conclude from their own row of
    `inverse` and `theta`, those that have observed nothing from what is shared alone."""

    pool: Pool
    ridges: Ridges
    center: Vector
    mean: Vector
    regressions: Sequence[Regression]
    inverse: Matrix
    theta: Matrix
    idle: Sequence[Regression]

    def take(self) -> None:
        """Let pool and regressions believe it."""
        pool = self.pool
        pool.conclude(self.ridges, self.center, self.mean)
        for one, inverse, theta in zip(self.regressions, self.inverse, self.theta, strict=True):
            one.conclude(inverse, theta)
        if self.idle:
            inverse = np.diag(1.0 / pool.ridges)
            for one in self.idle:
                one.conclude(inverse, pool.mean)


def estimate(*parts: Part, rescaled: bool = True) -> None:
    """Estimate shared coefficients, and the scales too, and let every regression conclude."""
    for conclusion in estimated(parts, rescaled=rescaled):
        conclusion.take()


def estimated(parts: Iterable[Part], *, rescaled: bool = True) -> list[Conclusion]:
    """Return what follows from the evidence of all regressions. O(N·d³) for N of them that have
    observed something. Nothing changes yet."""
    pools: list[Pool] = []
    known: list[list[Regression]] = []
    idle: list[list[Regression]] = []
    inverses: list[Matrix] = []
    thetas: list[Vector] = []
    left: list[float] = []
    found: list[Conclusion] = []
    for part in parts:
        pool, blank = part.pool, _Blank(part.pool)
        seen: list[Regression] = []
        unseen: list[Regression] = []
        for k, one in enumerate(part.regressions):
            inverse, theta, decay = one.held()
            # Where none has observed anything, one says so for all.
            if (seen or k + 1 < len(part.regressions)) and blank.is_held(inverse, theta):
                unseen.append(one)
                continue
            seen.append(one)
            inverses.append(inverse)
            thetas.append(theta)
            left.append(decay if part.left is None else part.left[k])
        if seen:
            pools.append(pool)
            known.append(seen)
            idle.append(unseen)
        else:
            none = np.empty(0)
            found.append(Conclusion(pool, pool.scales, pool.center, pool.mean, [], none, none, []))
    if not pools:
        return found
    scales = _scales(pools, [len(seen) for seen in known])
    inverse, excess = np.array(inverses), np.array(thetas)
    excess -= scales.each(np.array([pool.mean for pool in pools]))
    A, y = posterior.sums(inverse, excess, np.array(left), scales.each(scales.ridges))
    before = (inverse, excess) if rescaled else None
    return found + _concluded(pools, known, idle, A, y, before, scales)


def conclude_from(
    pool: Pool,
    regressions: Sequence[Regression],
    A: Matrix,
    b: Matrix,
    *,
    rescaled: bool = True,
) -> None:
    """Estimate from this evidence of regressions, shape (K, d, d) and (K, d), and let each conclude
    from all."""
    scales, y = _scales([pool], [len(regressions)]), b - A.dot(pool.mean)
    before = None
    if rescaled:
        inverse = symmetric_inverse(posterior.plus(A, pool.ridges))
        before = inverse, posterior.times(inverse, y)
    for conclusion in _concluded([pool], [regressions], [[]], A, y, before, scales):
        conclusion.take()


def _concluded(
    pools: Sequence[Pool],
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
    spreads = posterior.spreads(A, scales)
    ridges = [pool.scales for pool in pools]
    if before is not None:
        sizes = posterior.sizes(*before, scales)
        ridges = [
            pool.rescaled(found, square)
            for pool, found, (square, _) in zip(pools, sizes, spreads, strict=True)
        ]
        scales = _scales(pools, scales.counts, ridges)
    fitted = posterior.fit(A, y, scales)
    means = np.array([pool.mean for pool in pools])
    theta = fitted.excess
    theta += scales.each(means)
    means += fitted.shift
    found, start = [], 0
    for group, pool in enumerate(pools):
        rows = slice(start, start + scales.counts[group])
        start = rows.stop
        _, center = spreads[group]
        found.append(
            Conclusion(
                pool,
                ridges[group],
                pool.center if center is None else center,
                means[group],
                known[group],
                fitted.inverse[rows],
                theta[rows],
                idle[group],
            )
        )
    return found


class _Blank:
    """What a regression of a pool holds that has observed nothing. It says nothing, and of eleven
    young arms that is most."""

    __slots__ = ("_inverse", "_pool", "_variance")

    def __init__(self, pool: Pool) -> None:
        self._pool, self._variance, self._inverse = pool, 1.0 / pool.bias_ridge, b""

    def is_held(self, inverse: Matrix, theta: Vector) -> bool:
        """Tell whether this is it."""
        # The last feature of every context is 1: any observation has changed this entry.
        if inverse.item(-1) != self._variance:
            return False
        if not self._inverse:
            self._inverse = np.diag(1.0 / self._pool.ridges).tobytes()
        return (
            inverse.tobytes() == self._inverse
            and np.abs(theta - self._pool.mean).max().item() <= SAME
        )


def _scales(
    pools: Sequence[Pool], counts: list[int], ridges: Sequence[Ridges] | None = None
) -> Scales:
    """Return what is assumed of pools with so many regressions each, at other scales than theirs
    if these are given."""
    d, ridges = pools[0].d, ridges or [pool.scales for pool in pools]
    biases = [pool.shared_bias_ridge for pool in pools]
    toward = _rows([(0.0, pool.guess) for pool in pools], d)
    toward -= np.array([pool.mean for pool in pools])
    shared = [(one.shared, bias) for one, bias in zip(ridges, biases, strict=True)]
    shared_ridges = _rows(shared, d)
    toward *= shared_ridges
    return Scales(_rows([(one.own, one.bias) for one in ridges], d), shared_ridges, toward, counts)


def _rows(entries: list[tuple[float, float]], d: int) -> Matrix:
    """Return rows of d entries, the first of a pair for all features, the second for the bias."""
    return np.array([[features] * (d - 1) + [bias] for features, bias in entries])
