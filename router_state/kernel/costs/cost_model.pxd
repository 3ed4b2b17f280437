from router_state.kernel.costs.cost_means cimport CostMeans
from router_state.kernel.numbers.words cimport Floats, Real


cdef class CostModel(CostMeans):
    cpdef void hurry(self)
    cpdef void follow(self, Real ratio, Real predicted)
    cpdef tuple observe(self, Real ratio, x, Real known, Real now)
    cdef _watch(self, Real ratio, Real exponent, Real spread, Real known, Real now)
    cdef tuple _shifted(self, shift, Real rest, Floats u, Real spread, Real known)
    cdef void _calibrate(self, Real ratio, Real exponent, Real known)
    cdef void _move_share(self, Real factor)
