"""Pools: one budget of a period for several routers, or for other pools. Declarations, reports and
the time go in; grants and new state come out.
"""
