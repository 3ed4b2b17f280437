"""Pools for people: their declarations, and the leases that routers report."""
