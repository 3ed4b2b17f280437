"""The numbers of observations that a memory, a first guess and a declared mean count for."""

from router_state.kernel.numbers.words cimport Real

MEMORY = 2000.0
"""Largest effective number of observations behind an estimate: the memory of `live`'s γ."""
GUESSED = 3.0
"""Observations that a first guess counts for."""
BELIEVED = 20.0
"""Bills that a declared mean counts for: after as many bills of its own, a model's mean outweighs
the declared one.
"""


# For Python, which does not see numbers of C.
globals().update(MEMORY=MEMORY, GUESSED=GUESSED, BELIEVED=BELIEVED)
