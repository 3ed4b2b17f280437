"""Pools: one budget for several routers, moved to where a dollar earns most.

What a router holds of its pool is the budget of a period in its own declaration: its lease. So a
router never waits for its pool, and all leases together are never more than the pool.
"""
