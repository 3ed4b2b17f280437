"""Learn one reward of a model whose siblings share a prior."""

from libc.math cimport isfinite, sqrt

from ground.refusing import NonFiniteInput
from router_state.kernel.learning.detector cimport Detector
from router_state.kernel.learning.detector import Shift
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.learning.shared_prior cimport SharedPrior
from router_state.kernel.numbers.words cimport Index, Real

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
    """Let a regression that has forgotten until clock t and its shared prior learn a reward; return
    the shift that the detector found.

    Raises:
        NonFiniteInput: a number is not finite; nothing was learned.
    """
    one.forget(t, gamma)
    if not isfinite(reward):
        raise NonFiniteInput("what was observed is not finite")
    spread: Real = one.see(x)
    residual: Real = reward - one.mean_seen
    variance: Real = spread / one.decay
    one.learn(residual, spread)
    if not detector.doubts():
        prior.observe(residual, variance)
    return detector.observe(
        residual / sqrt(1.0 + variance),
        prior.typical(),
        variance * one.decay / one.values[one.at - 1],
        now,
    )
