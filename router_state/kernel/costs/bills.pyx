"""Learn one bill of a model whose siblings share a prior."""

from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.learning.estimating import estimate
from router_state.kernel.learning.regression cimport RIDGE_FLOOR
from router_state.kernel.numbers.words cimport Real

cpdef tuple learn_bill(CostModel costs, priced, Real ratio, x, Real known, Real now):
    """Let a cost model learn a bill (`CostModel.observe`). Estimate its shared prior at once if
    that is overdue; `priced` are the regressions that share the prior.
    """
    found = costs.observe(ratio, x, known, now)
    if costs.prior.late() or costs.regression.decay < RIDGE_FLOOR:
        estimate(costs.prior, priced)
    return found
