from router_state.kernel.choosing.sample cimport EVERY

# Number of contexts in one block of the window, which is one piece: as many as the decisions
# between two solutions write, and as many as a processor's vector holds.
cdef enum:
    BLOCK = EVERY
