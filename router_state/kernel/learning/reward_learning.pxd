from router_state.kernel.learning.detector cimport Detector
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
)
