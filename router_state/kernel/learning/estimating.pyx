"""Estimate a shared prior, means and scales, from the evidence of all models."""

from router_state.kernel.learning.evidence cimport Evidence
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.linear cimport EPSILON
from router_state.kernel.numbers.words cimport Flag, Floats, Index, Real, known

def estimate(SharedPrior prior, regressions, *, left=None, Flag rescaled=True):
    """Estimate the shared coefficients and optionally the scales, and update every regression, in
    O(N·d³) for N regressions with observations.

    Args:
        left: remaining share of each regression's evidence, in place of its own `decay`.
    """
    if left is not None and len(left) != len(regressions):
        raise ValueError(f"{len(left)} shares are not of {len(regressions)} regressions")
    seen: list[Regression] = []
    lefts: list[float] = []
    idle: list[Regression] = []
    for k, one in enumerate(regressions):
        # If no regression has observations, one represents all.
        if (seen or k + 1 < len(regressions)) and knows_nothing(prior, one):
            idle.append(one)
        else:
            seen.append(one)
            lefts.append(one.decay if left is None else left[k])
    untaught: Flag = len(seen) == 1 and knows_nothing(prior, seen[0])
    if seen:
        evidence = Evidence(prior, seen)
        evidence.gather(lefts)
        if rescaled:
            evidence.rescale()
        evidence.conclude()
        if untaught:
            seen[0].share()
    prior.concluded()
    for one in idle:
        one.know_only(prior.ridge, prior.bias_ridge, prior.mean)


def conclude_shifted(SharedPrior prior, regressions, shifts):
    """Shift every observation of each regression by its offset, and update at the same scales."""
    if len(shifts) != len(regressions):
        raise ValueError(f"{len(shifts)} shifts are not of {len(regressions)} regressions")
    if regressions:
        evidence = Evidence(prior, list(regressions))
        evidence.gather([one.decay for one in regressions])
        evidence.shift(list(shifts))
        evidence.conclude()
    prior.concluded()


cdef Flag knows_nothing(SharedPrior prior, Regression one):
    """Tell whether a regression is equal to its prior."""
    V, d = one.values, one.d
    mean: Floats = known(prior.mean, d)
    # The last feature of every context is 1: any observation has changed this entry.
    if one.pending or V[one.at - 1] != 1.0 / prior.bias_ridge:
        return False
    place: Index = 0
    variance: Real = 1.0 / prior.ridge
    for i in range(d):
        for j in range(i):
            if V[place + j] != 0.0:
                return False
        if i < d - 1 and V[place + i] != variance:
            return False
        if not -EPSILON <= V[one.at + i] - mean[i] <= EPSILON:
            return False
        place += i + 1
    return True
