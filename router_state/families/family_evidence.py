"""Return a router's own evidence about its models, and the part of that evidence that may leave the
router.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from router_state.families.family_sums import LEAST_REPORTED, Sums, bytes_of
from router_state.families.outside_sums import Share
from router_state.families.sum_bytes import lower
from router_state.kernel import Evidence, Regression, SharedPrior


def whole_sums(one: Regression, prior: SharedPrior) -> Sums:
    """Return all evidence in a regression, that of others included, without the shared prior."""
    ridges = prior.ridges
    whole = np.linalg.inv(one.V())
    A = (whole - np.diag(ridges)) * one.decay
    b = (whole @ one.theta - ridges * prior.mean) * one.decay
    return Sums((A + A.T) / 2.0, b)


def given_sums(one: Regression, prior: SharedPrior) -> Sums:
    """Return `whole_sums` of a regression without observations, equal to the bit on every
    machine."""
    center = prior.center
    evidence = Evidence(prior, [one])
    evidence.gather([1.0])
    prior.center = center
    d, (triangle, y, *_) = one.d, evidence.arrays
    A = np.zeros((d, d))
    A[lower(d)] = triangle
    A += np.tril(A, -1).T
    return Sums(A, y[:d] + (A * prior.mean).sum(1))


def own_sums(one: Regression, prior: SharedPrior, *shares: Share | None) -> Sums:
    """Return the evidence in a regression that comes from its own router."""
    found = whole_sums(one, prior)
    for share in shares:
        if share is not None:
            found = found.less(share.left(one))
    return found


def shareable(own: Mapping[str, Sums]) -> dict[str, bytes]:
    """Return the sums that may leave a router. For a model with fewer than `LEAST_REPORTED`
    requests they hold only its mean, at the mean context of all the router's requests. The result
    is empty if all models together have fewer requests.
    """
    count = sum(one.count for one in own.values())
    if count < LEAST_REPORTED:
        return {}
    center = np.sum([one.A[-1] for one in own.values()], axis=0) / count
    found = {}
    for name, one in own.items():
        if one.count >= LEAST_REPORTED:
            found[name] = bytes_of(one)
        elif one.count > 0.5:
            mean = Sums(one.count * np.outer(center, center), one.b[-1] * center)
            found[name] = bytes_of(mean)
    return found
