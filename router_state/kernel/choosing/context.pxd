from router_state.kernel.learning.regression cimport Regression
from router_state.kernel.numbers.words cimport Index

cdef void require_dimensions(Regression one, Index d)
cdef checked(x, Index d)
