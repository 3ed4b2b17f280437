"""Estimate a shared prior, means and scales, from the evidence of all models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router_state.kernel.learning.evidence import Evidence
from router_state.kernel.learning.regression import Regression
from router_state.kernel.learning.shared_prior import SharedPrior
from router_state.kernel.numbers.linear import EPSILON
from router_state.kernel.numbers.words import Floats, Index, Real, cfunc, known

if TYPE_CHECKING:
    from collections.abc import Sequence


def estimate(
    prior: SharedPrior,
    regressions: Sequence[Regression],
    *,
    left: Sequence[float] | None = None,
    rescaled: bool = True,
) -> None:
    """Estimate the shared coefficients and optionally the scales, and update every regression;
    O(N·d³) for N with observations.

    Args:
        left: remaining shares of each one's evidence, in place of its own `decay`.
    """
    if left is not None and len(left) != len(regressions):
        raise ValueError(f"{len(left)} shares are not of {len(regressions)} regressions")
    seen: list[Regression] = []
    lefts: list[float] = []
    idle: list[Regression] = []
    for k, one in enumerate(regressions):
        # If none has observations, one represents all.
        if (seen or k + 1 < len(regressions)) and knows_nothing(prior, one):
            idle.append(one)
        else:
            seen.append(one)
            lefts.append(one.decay if left is None else left[k])
    untaught: bool = len(seen) == 1 and knows_nothing(prior, seen[0])
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


def conclude_shifted(
    prior: SharedPrior, regressions: Sequence[Regression], shifts: Sequence[float]
) -> None:
    """Shift every observation of each regression, and update at the same scales."""
    if len(shifts) != len(regressions):
        raise ValueError(f"{len(shifts)} shifts are not of {len(regressions)} regressions")
    if regressions:
        evidence = Evidence(prior, list(regressions))
        evidence.gather([one.decay for one in regressions])
        evidence.shift(list(shifts))
        evidence.conclude()
    prior.concluded()


@cfunc
def knows_nothing(prior: SharedPrior, one: Regression) -> bool:
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
