from router_state.kernel.costs.cost_model cimport CostModel
from router_state.kernel.learning.detector cimport Detector
from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.numbers.words cimport Index, Real


cdef class Arm:
    cdef public str name
    cdef public object price
    cdef public Real per_1k
    cdef public Real log_price
    cdef public Regression rewards
    cdef public CostModel costs
    cdef public Detector detector
    cdef public object suspicion
    cdef public Index last_played
    cdef public Index pulls_left
    cdef public object retired_at
