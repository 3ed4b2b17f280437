"""Learn one reward of a model, alone or with siblings that share a prior."""

from libc.math cimport isfinite, sqrt

from ground.refusing import NonFiniteInput
from router_state.kernel.learning.detector cimport Detector
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.words cimport Floats, Index, Real, of_block, scratch

cpdef Real learn_alone(Regression one, x, Real reward, Index t, Real gamma, Real ridge):
    """Let a regression without siblings forget until clock t, its ridge restored, and learn a
    reward; return its `forgotten`.

    Raises:
        NonFiniteInput: a number is not finite; nothing was learned.
    """
    one.forget(t, gamma, ridge)
    if not isfinite(reward):
        raise NonFiniteInput("what was observed is not finite")
    held = scratch(one.d)
    u: Floats = of_block(held)
    mean, spread = one.see(x, u)
    one.learn(u, reward - mean, spread)
    return one.forgotten


cpdef learn_reward(
    Regression one,
    SharedPrior prior,
    Detector detector,
    x,
    Real reward,
    Index t,
    Real gamma,
    Real now,
):
    """Let a regression, which has forgotten until clock t, and its shared prior learn a reward;
    return the shift that the detector found.

    Raises:
        NonFiniteInput: a number is not finite; nothing was learned.
    """
    one.forget(t, gamma)
    if not isfinite(reward):
        raise NonFiniteInput("what was observed is not finite")
    held = scratch(one.d)
    u: Floats = of_block(held)
    mean, spread = one.see(x, u)
    residual: Real = reward - mean
    variance: Real = spread / one.decay
    one.learn(u, residual, spread)
    if not detector.doubts():
        prior.observe(residual, variance)
    return detector.observe(
        residual / sqrt(1.0 + variance),
        prior.typical(),
        variance * one.decay / one.values[one.at - 1],
        now,
    )
