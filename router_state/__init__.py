"""The decision core of a router: events in, decisions and new state out.

Python and numpy, with the arithmetic of `kernel` in Cython. Nothing here does I/O, reads a clock,
takes a lock, logs or draws from a global random generator; whoever drives an `Engine` hands in the
time and the events. The agents, the replay tool, the benchmarks and the tests drive the same
`Engine`.

`agents` and everything above may import it. It imports `ground`, and never `schemas`.
"""
