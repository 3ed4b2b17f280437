from router_state.kernel.numbers.words cimport Floats, Index, Real

# Numbers of an arm. Behind the numbers of all arms stands the doubt of a reward that they share.
cdef enum:
    ROW = 10

# Places of an arm's numbers: expected reward, exploration bonus, expected dollars, the penalty of
# these dollars, and the variance of the arm's draw. `VARIANCE` is xᵀVx of its rewards' regression,
# not decayed, and `EXPONENT` the predicted logarithm of bill ÷ list price. # `UNSURE` is the first
# of three doubts: the variance of its expected reward, that of a bill's logarithm, and the
# probability that a call costs anything.
cdef enum:
    MEAN = 0
    BONUS = 1
    COST = 2
    PENALTY = 3
    SPREAD = 4
    VARIANCE = 5
    EXPONENT = 6
    UNSURE = 7


cdef class Candidates:
    cdef public tuple models
    cdef public list excluded
    cdef public Index K
    cdef object _block
    cdef Floats _values
    cdef void _start(self, tuple models, list excluded)
    cdef void _set(self, Index which, numbers)
    cpdef Real reward(self, Index k)
    cpdef tuple expected(self, Index k)
    cpdef Real cost_usd(self, Index k)
    cdef void _require_reasons(self)
    cdef Index row(self, Index k)
    cdef Real score_at(self, Index row)
    cpdef list best(self)
    cpdef tuple choose(self)
    cpdef Index leader(self)
    cpdef list cheapest(self, list tied)
    cpdef Real chance_of(self, Index k)
