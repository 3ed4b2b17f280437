"""Pools for people: their declarations, and the grants that routers report."""
