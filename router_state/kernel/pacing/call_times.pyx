"""Compute expected times of calls, and the probability that they exceed a limit.

The logarithm of a call's seconds is learned like the logarithm of a bill, as if a second had a
list price of one dollar.
"""

from libc.math cimport isfinite, sqrt

import numpy as np

from router_state.kernel.costs.cost_model cimport CostModel
from ground.refusing import NonFiniteInput
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.numbers.elementary cimport below, log
from router_state.kernel.numbers.linear cimport dot
from router_state.kernel.numbers.words cimport (
    Floats, Index, Real, Singles, known, of_block, scratch, singles, view,
)

def waits(contexts, Index n, Index d, models, *, variances, Real limit):
    """Return for n contexts the expected seconds of a call of each of K models, and the
    probability that the call takes longer than `limit` seconds: two blocks of n rows of K.

    Args:
        contexts: at least n rows of d, in single precision.
        variances: by model, the variance of the logarithm of a call's seconds around its
            expectation.

    Raises:
        NonFiniteInput: a time is not finite.
    """
    held: Singles = singles(contexts, n * d)
    K: Index = len(models)
    spreads: Floats = known(variances, K)
    seconds, slow = np.zeros(n * K), np.zeros(n * K)
    took: Floats = view(seconds)
    late: Floats = view(slow)
    log_limit: Real = log(limit)
    room = scratch(d)
    space: Floats = of_block(room)
    one: CostModel
    of: Regression
    for row in range(n):
        for i in range(d):
            space[i] = held[row * d + i]
        for k in range(K):
            one = models[k]
            of = one.regression
            if of.d != d:
                raise ValueError(f"a regression of {of.d} dimensions is not of {d}")
            exponent: Real = dot(of.values, of.at, space, 0, d)
            took[row * K + k] = one.expect(exponent, 0.0)
            chance: Real = 1.0 - below((log_limit - exponent) / sqrt(spreads[k]))
            late[row * K + k] = min(max(chance, 0.0), 1.0)
            if not isfinite(took[row * K + k] + chance):
                raise NonFiniteInput("a context, or what was learned of times, is not finite")
    return seconds, slow
